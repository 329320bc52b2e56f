import { describe, expect, test } from "vitest";
import { configFrom } from "../../functions/wiring/config.ts";
import { natsServers } from "../../shared/settings/servers.ts";
import {
  defaults,
  makeSettings,
  settingsFrom,
  takeoverWait,
  timing,
} from "../../shared/settings/settings.ts";
import { backoff } from "../../shared/values/backoff.ts";
import { parseDuration, showDuration } from "../../shared/values/duration.ts";

describe("settings", () => {
  test("are the defaults, completed, checked and frozen", () => {
    expect(makeSettings()).toEqual(defaults);
    expect(Object.isFrozen(makeSettings({ ackWait: 5_000 }))).toBe(true);
    expect(makeSettings({ ackWait: 3_000 }).requestTimeout).toBe(1_000);
  });

  test("a store that is away for 10 s at any moment costs no lease, by default", () => {
    const { beatEvery, leaseTime } = timing(defaults);
    expect(beatEvery + 10_000).toBeLessThan(leaseTime);
    expect(leaseTime).toBeLessThan(defaults.ackWait);
    expect(takeoverWait(leaseTime)).toBeGreaterThan(leaseTime);
  });

  test.each([
    [{ ackWait: 500 }, /PAWL_ACK_WAIT=500ms is too small: the least is 1s/],
    [{ retention: 1_000 }, /PAWL_RETENTION=1s is shorter than the redelivery horizon 500m/],
    [
      { retention: 13 * 86_400_000 },
      /^PAWL_RETENTION=13d is too small: the least is 14d\. .* before its week is explained/,
    ],
    [{ requestTimeout: 25_000 }, /PAWL_REQUEST_TIMEOUT=25s is not below the lease 20s/],
    [{ inputLimit: 900_000 }, /PAWL_INPUT_LIMIT=900000 and PAWL_RESULT_LIMIT=262144/],
    [{ maxDeliver: 3 }, /PAWL_MAX_DELIVER=3 is too small: the least is 10/],
    [{ crashLimit: 1 }, /PAWL_CRASH_LIMIT=1/],
    [{ replicas: 2 }, /PAWL_REPLICAS=2: it can be 1, 3 or 5/],
    [{ generation: 0 }, /PAWL_GENERATION=0/],
    [{ queueBytes: 10 }, /PAWL_QUEUE_BYTES=10 is too small/],
    [{ namespace: "Not_ok" }, /PAWL_NAMESPACE is "Not_ok"/],
  ])("%o contradict each other, and the error says how", (given, says) => {
    expect(() => makeSettings(given)).toThrow(says);
  });

  test("come from the environment, each in its form", () => {
    expect(
      settingsFrom({
        PAWL_ACK_WAIT: "45s",
        PAWL_REPLICAS: "3",
        PAWL_NAMESPACE: "prod",
        PAWL_RETENTION: "30d",
      }),
    ).toMatchObject({
      ackWait: 45_000,
      replicas: 3,
      namespace: "prod",
      retention: 30 * 86_400_000,
    });
    expect(settingsFrom({ PAWL_RETENTION: "14d" }).retention).toBe(14 * 86_400_000);
    expect(() => settingsFrom({ PAWL_RETENTION: "1d" })).toThrow(/PAWL_RETENTION=1d is too small/);
    expect(() => settingsFrom({ PAWL_ACK_WAIT: "30" })).toThrow(
      /PAWL_ACK_WAIT is "30"; it should be a duration such as "30s"/,
    );
    expect(() => settingsFrom({ PAWL_REPLICAS: "three" })).toThrow(/PAWL_REPLICAS/);
  });
});

describe("the environment", () => {
  const good = { NATS_URL: "nats://127.0.0.1:4222", PAWL_STORE: "nats-kv" };

  test("takes several servers", () => {
    const several = "nats://a:4222, nats://b:4222";
    expect(natsServers(configFrom({ ...good, NATS_URL: several }).nats.url)).toEqual([
      "nats://a:4222",
      "nats://b:4222",
    ]);
  });

  test.each([
    ["NATS_URL", "nats://user:s3cret@host"],
    ["NATS_URL", "nats://user:pass@s3cret@host"],
    ["NATS_URL", "nats:/user:pass@s3cret"],
    ["NATS_URL", "nats://a:4222,http://user:s3cret@host"],
    ["PAWL_WAKE_URL", "https://user:s3cret@{agent}.example.com/run"],
    ["PAWL_WAKE_URL", "https://user:pa/s3cret@example.com/run"],
    ["PAWL_WEBHOOK_URL", "https://s3cret@example.com"],
    ["PAWL_WEBHOOK_URL", "https//user:s3cret@example.com"],
    ["ANTHROPIC_BASE_URL", "http://user:s3cret@example.com"],
  ])("%s with a password in it is refused, and shows none of it: %s", (name, url) => {
    const secrets = { PAWL_RUN_SECRET: "0123456789abcdef", PAWL_WEBHOOK_SECRET: "0123456789abcdef" };
    const refused = () => configFrom({ ...good, ...secrets, [name]: url });
    expect(refused).toThrow(new RegExp(`^${name} (has a name or a password in it|is not well-formed)`));
    expect(refused).not.toThrow(/s3cret/);
  });

  test.each([
    [{ NATS_URL: undefined }, /NATS_URL is not set/],
    [{ NATS_URL: "127.0.0.1:4222" }, /NATS_URL is "127.0.0.1:4222"\. It should begin with nats:\/\//],
    [
      { NATS_URL: "nats://127.0.0.1:99999" },
      /^NATS_URL is "nats:\/\/127\.0\.0\.1:99999", which is not a valid address/,
    ],
    [{ NATS_URL: "http://x" }, /should begin with/],
    [{ NATS_URL: "nats://a:4222,http://x" }, /^NATS_URL is "http:\/\/x"\. It should begin with/],
    [{ NATS_URL: "nats://a:4222,wss://b" }, /All of its addresses should be of WebSockets/],
    [
      { NATS_CREDS: "a.creds", NATS_USER: "u", NATS_PASSWORD: "p" },
      /NATS_CREDS and NATS_USER\/NATS_PASSWORD are both set/,
    ],
    [{ NATS_USER: "u" }, /NATS_USER is set without NATS_PASSWORD/],
    [{ NATS_PASSWORD: "p" }, /NATS_PASSWORD is set without NATS_USER/],
    [
      { PAWL_STORE: undefined },
      /PAWL_STORE is not set\. Set it to one of firestore, firestore-rest, nats-kv/,
    ],
    [{ PAWL_STORE: "redis" }, /PAWL_STORE is "redis"/],
    [{ PAWL_STORE: "firestore" }, /GOOGLE_CLOUD_PROJECT is not set, and PAWL_STORE is firestore/],
    [
      { PAWL_STORE: "firestore-rest", GOOGLE_CLOUD_PROJECT: "p" },
      /needs GOOGLE_APPLICATION_CREDENTIALS .* or FIRESTORE_EMULATOR_HOST/,
    ],
  ])("%o is named, with what to do", (change, says) => {
    expect(() => configFrom({ ...good, ...change })).toThrow(says);
  });

  test("names everything that is missing at once", () => {
    expect(() => configFrom({})).toThrow(/NATS_URL is not set[\s\S]*PAWL_STORE is not set/);
  });

  test("says once what is malformed, and draws no conclusions from it", () => {
    const env = { ...good, PAWL_WEBHOOK_URL: "ftp://x", PAWL_WEBHOOK_SECRET: "long-enough-a-secret" };
    const slow = { PAWL_ACK_WAIT: "60", PAWL_REQUEST_TIMEOUT: "25s", PAWL_STORE: "redis" };
    expect(() => configFrom({ ...env, ...slow })).toThrow(
      /^PAWL_STORE is "redis"; .*\nPAWL_WEBHOOK_URL is "ftp:\/\/x"; .*\nPAWL_ACK_WAIT is "60"; it should be a duration such as "30s"$/,
    );
  });

  test("knows its own variables, and says which is none of them", () => {
    expect(() => configFrom({ ...good, PAWL_ACKWAIT: "3s" })).toThrow(
      "PAWL_ACKWAIT is not a setting of Pawl",
    );
  });

  test("is read whole", () => {
    const env = {
      ...good,
      PAWL_STORE: "firestore-rest",
      GOOGLE_CLOUD_PROJECT: "p",
      FIRESTORE_EMULATOR_HOST: "h:1",
      NATS_USER: "u",
      NATS_PASSWORD: "s",
    };
    expect(configFrom(env)).toMatchObject({
      store: "firestore-rest",
      project: "p",
      emulatorHost: "h:1",
      nats: { user: "u", password: "s" },
    });
  });
});

test("durations are read and shown", () => {
  expect(["250ms", "30s", "1.5m", "2h", "90d"].map(parseDuration)).toEqual([
    250, 30_000, 90_000, 7_200_000, 7_776_000_000,
  ]);
  expect(["", "30", "s", "-1s", "1 s", "1w", "1e3s"].map(parseDuration)).toEqual(Array(7).fill(undefined));
  expect([250, 30_000, 90_000, 0].map(showDuration)).toEqual(["250ms", "30s", "90s", "0ms"]);
});

test("retries back off exponentially, each between half and whole, never beyond the most", () => {
  expect([1, 2, 3, 4].map((attempt) => backoff(attempt, 1))).toEqual([1_000, 2_000, 4_000, 8_000]);
  expect([1, 2, 3].map((attempt) => backoff(attempt, 0))).toEqual([500, 1_000, 2_000]);
  expect(backoff(1_000, 1)).toBe(300_000);
});
