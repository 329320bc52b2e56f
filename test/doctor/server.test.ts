import { execFile } from "node:child_process";
import { join } from "node:path";
import { connect } from "@nats-io/transport-node";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { byName } from "../../infra/doctor/by-name.ts";
import { examine } from "../../infra/doctor/examine.ts";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { queueOf } from "../../shared/dispatch/dispatch.ts";
import { streamName } from "../../shared/task/names.ts";
import { ofThisRun } from "../support/servers/runners.ts";
import { testNats, wired, world } from "../support/servers/stores.ts";
import { configurations } from "./configs.ts";
import { disagreements } from "./verdict.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

const NOTHING = { streams: [], consumers: [], application: {} };
const published = (name: string) => join(import.meta.dirname, "published", `${name}.json`);

function doctor(args: readonly string[], input = ""): Promise<{ code: number; out: string; err: string }> {
  return new Promise((resolve) => {
    const env = { PATH: process.env.PATH, ...ofThisRun() };
    const child = execFile(
      process.execPath,
      [inject("programs").pawl, "doctor", ...args],
      { env },
      (error, out, err) => resolve({ code: error ? Number(error.code) : 0, out, err }),
    );
    child.stdin?.end(input);
  });
}

test("of 200 random configurations it says of each whether nats-server takes it, and with which code it does not", async () => {
  const nc = await connect({ servers: nats.url });
  const made = fc.sample(configurations, { seed: 17, numRuns: 200 });
  const { accepted, wrong } = await disagreements(nc, made);
  await nc.close();
  expect(wrong).toEqual([]);
  expect(accepted).toBeGreaterThan(40);
  expect(accepted).toBeLessThan(160);
});

describe("by name", () => {
  test("Pawl's own queues have nothing wrong with them", async () => {
    const w = world(nats, "nats-kv");
    await using deps = await wired(w.config);
    const queue = queueOf(deps, { agent: "recorder", lane: 0 });
    await deps.bus.ensure(queue);
    const contracts = await byName({ url: nats.url, stream: streamName(queue) }, NOTHING, {});
    expect(contracts).toMatchObject([
      { server: expect.stringMatching(/^2\./), application: { dead_letters: "stream" } },
    ]);
    expect(contracts.flatMap(examine)).toEqual([]);
    const bucket = await byName(
      { url: nats.url, stream: `KV_${w.config.settings.namespace}-tasks` },
      NOTHING,
      {},
    );
    expect(bucket.flatMap(examine)).toEqual([]);
  });

  test("what the server made of a backoff is found, and what monitoring says of its disk", async () => {
    const nc = await connect({ servers: nats.url });
    const ask = (subject: string, body: object) => nc.request(`$JS.API.${subject}`, JSON.stringify(body));
    const stream = { name: "FLEET", subjects: ["fleet.*"], retention: "workqueue", storage: "file" };
    await ask("STREAM.CREATE.FLEET", stream);
    const backoff = [30e9, 120e9, 300e9];
    const config = { durable_name: "w", ack_policy: "explicit", ack_wait: 300e9, max_deliver: 5, backoff };
    await ask("CONSUMER.DURABLE.CREATE.FLEET.w", { stream_name: "FLEET", config });
    await nc.close();
    const parts = { ...NOTHING, application: { heartbeat: 120_000 } };
    const found = (
      await byName({ url: nats.url, stream: "FLEET", monitor: nats.monitorUrl }, parts, {})
    ).flatMap(examine);
    expect(found.map(({ severity, rule }) => `${severity} ${rule}`)).toEqual([
      "error heartbeat-too-slow",
      "warning one-copy-unsynced",
      "warning advisories-uncaptured",
    ]);

    const asked = await doctor(["--nats", nats.url, "--stream", "FLEET", "--consumer", "w", "--json"]);
    expect(asked.code).toBe(0);
    const { findings } = JSON.parse(asked.out) as { findings: readonly { rule: string; subject: string }[] };
    expect(findings.map(({ rule, subject }) => [rule, subject])).toEqual([
      ["backoff-replaces-ack-wait", "FLEET > w"],
      ["advisories-uncaptured", "FLEET > w"],
    ]);
  });

  test("what is not there is told, with what is", async () => {
    const at = { url: nats.url, stream: "NONE" };
    await expect(byName(at, NOTHING, {})).rejects.toThrow(/^There is no stream "NONE" at nats:.*It has /);
    await expect(byName({ ...at, stream: "FLEET", consumer: "x" }, NOTHING, {})).rejects.toThrow(
      'Stream FLEET has no consumer "x". It has w',
    );
    await expect(byName({ ...at, url: "127.0.0.1" }, NOTHING, {})).rejects.toThrow(
      /^--nats is "127\.0\.0\.1"/,
    );
    await expect(byName({ ...at, stream: "FLEET", monitor: nats.url }, NOTHING, {})).rejects.toThrow(
      /^--monitor nats:.* It should be the address that nats-server's http: has/,
    );
  });
});

describe("the command", () => {
  test("ends with 1 for an error, and says it for people and for code scanning", async () => {
    const { code, out } = await doctor(["--config", published("fleet")]);
    expect(code).toBe(1);
    expect(out.split("\n").slice(0, 3)).toEqual([
      "ERROR    TASKS > agent: backoff [30s, 2m, 5m] replaces ack_wait 5m: a delivery times out after 30s",
      expect.stringMatching(/^ {11}backoff-replaces-ack-wait: The server puts backoff in place of ack_wait/),
      "           set  backoff: leave it out",
    ]);
    expect(out).toContain("\n8 errors, 1 warning: TASKS > agent\nnot looked at: server, ");

    const scanned = await doctor(["--config", published("fleet"), "--sarif"]);
    expect(scanned.code).toBe(1);
    const { version, runs } = JSON.parse(scanned.out);
    expect(version).toBe("2.1.0");
    const [{ tool, results }] = runs;
    expect(results).toHaveLength(9);
    const [first] = results;
    expect(tool.driver.rules[first.ruleIndex].id).toBe(first.ruleId);
    expect(first).toMatchObject({ ruleId: "backoff-replaces-ack-wait", level: "error" });
    const { artifactLocation, region } = first.locations[0].physicalLocation;
    expect(artifactLocation.uri).toContain("published/fleet.json");
    expect(region.startLine).toBe(17);
  });

  test("lists its rules, without the docs' links", async () => {
    const { code, out } = await doctor(["--rules"]);
    expect(code).toBe(0);
    expect(out).toContain("\nqueue-unsafe  (error)\n  looks at  every field of a queue's stream");
    expect(out).not.toMatch(/\]\(/);
  });

  test("ends with 0 for a warning, and with --strict with 1; with 2 when it was used wrongly", async () => {
    const warned = JSON.stringify({
      consumer: { ack_policy: "explicit", max_deliver: 5 },
      application: { acks: ["nak"] },
    });
    const [lax, strict, unread, none, bare] = await Promise.all([
      doctor(["--config", "-"], warned),
      doctor(["--config", "-", "--strict"], warned),
      doctor(["--config", "-", "--json"], "{"),
      doctor(["--stream", "Q"]),
      doctor(["stream.json", "consumer.json"]),
    ]);
    expect([lax.code, strict.code, unread.code, none.code, bare.code]).toEqual([0, 1, 2, 2, 2]);
    expect(lax.out).toMatch(/^warning {2}its consumer: acks has nak, without a delay\n/);
    expect(JSON.parse(unread.out)).toMatchObject({
      error: { code: "usage", message: expect.stringMatching(/^standard input: /) },
    });
    expect(none.err).toContain("--stream needs --nats");
    expect(bare.err).toContain("Did you mean pawl doctor --config stream.json consumer.json?");
    expect(bare.err).not.toContain("pawl submit");
  });
});
