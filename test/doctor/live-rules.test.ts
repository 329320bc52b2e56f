import { readFileSync } from "node:fs";
import { afterEach, describe, expect, test, vi } from "vitest";
import { examine, examineLive } from "../../infra/doctor/examine.ts";
import { ahead, type Seen } from "../../infra/doctor/live/ask.ts";
import { firestoreFaults, lookAtFirestore } from "../../infra/doctor/live/firestore.ts";
import { ownContract } from "../../infra/doctor/live/own.ts";
import { type Finding, findings } from "../../infra/doctor/rule.ts";
import { liveRules } from "../../infra/doctor/rules.ts";
import { makeSettings, type Settings } from "../../shared/settings/settings.ts";
import { liveTriggers, NOW, WELL } from "./live-triggers.ts";

afterEach(() => {
  vi.unstubAllGlobals();
});

describe("each rule finds what it is for, and spares what just holds", () => {
  test.each(Object.entries(liveTriggers))("%s", (rule, [finds, spares]) => {
    const of = (given: object): Finding[] => findings(liveRules, { ...WELL, ...given }, "it");
    expect(of(finds)).toEqual([expect.objectContaining({ rule, is: expect.stringMatching(/\S/) })]);
    expect(of(spares).filter((one) => one.rule === rule)).toEqual([]);
  });

  test("a deployment that is well has nothing wrong with it", () => {
    expect(findings(liveRules, WELL, "it")).toEqual([]);
  });

  test("clocks that are a little apart are only warned of; what was never reconciled is counted from its first queue", () => {
    const severities = (NATS: number) =>
      findings(liveRules, { ...WELL, clocks: { NATS } }, "it").map(({ severity }) => severity);
    expect([severities(60_000), severities(60_001)]).toEqual([["warning"], ["error"]]);
    const never = findings(liveRules, { ...WELL, reconciled: { begunAt: NOW - 9 * 86_400_000 } }, "it");
    expect(never[0]?.is).toBe("there was never a reconciliation, in 9 d");
  });

  test("a dispatch function that never came is counted from the first queue; without schedules it is only warned of", () => {
    const of = (begunAt: number, more: object = {}) =>
      findings(
        liveRules,
        { ...WELL, dispatched: { begunAt, hasSchedules: false, ...more }, overdue: [] },
        "it",
      ).map(({ severity, is }) => `${severity}: ${is}`);
    expect(of(NOW - 180_000)).toEqual([]);
    expect(of(NOW - 180_001)).toEqual(["warning: the dispatch function never came, in 3 min"]);
    expect(of(NOW - 7_200_000, { hasSchedules: true })).toEqual([
      "error: the dispatch function never came, in 2 h",
    ]);
    expect(of(0, { at: NOW - 7_200_000 })).toEqual(["error: the dispatch function came last 2 h ago"]);
  });

  test("who may do everything is told once; without accounts nothing else is compared; what was refused is named as it was", () => {
    const of = (isolation: "documents" | "accounts", more: object) =>
      findings(
        liveRules,
        {
          ...WELL,
          settings: makeSettings({ isolation }),
          rights: [{ identity: "operator", mayAll: false, wide: [], lacks: [], ...more }],
        },
        "it",
      ).map(({ rule, is }) => `${rule}: ${is}`);
    const all = (isolation: string) => [
      `permissions-too-wide: PAWL_ISOLATION is ${isolation}, and operator may do everything at NATS`,
    ];
    expect(of("accounts", { mayAll: true, wide: ["publish to >"] })).toEqual(all("accounts"));
    expect(of("documents", { mayAll: true, wide: ["publish to >"] })).toEqual(all("documents"));
    expect(of("documents", { wide: ["publish to a"], lacks: ["subscribe to b"] })).toEqual([]);
    expect(of("accounts", { wide: ["publish to a"], lacks: ["subscribe to b"] })).toEqual([
      "permissions-too-wide: operator may publish to a, which pawl creds does not give it",
      "permission-missing: operator may not subscribe to b, which pawl creds gives it",
    ]);
    const refused = [{ what: "listing streams", reason: "no" }];
    expect(findings(liveRules, { ...WELL, refused }, "it")).toEqual([
      expect.objectContaining({ rule: "permission-missing", is: "listing streams: no" }),
    ]);
  });

  test("what is due is named beside the function that did not come", () => {
    const overdue = [{ what: "task t of echo", since: NOW - 200_000 }];
    const dispatched = { at: NOW - 60_000, begunAt: 0, hasSchedules: false };
    expect(findings(liveRules, { ...WELL, overdue, dispatched }, "it").map(({ is }) => is)).toEqual([
      "task t of echo is due for 3 min 20 s, and nobody has dispatched it",
    ]);
  });

  test("a clock is off by what no delay of the answer explains", () => {
    expect([ahead(90, 100, 200), ahead(150, 100, 200), ahead(230, 100, 200)]).toEqual([-10, 0, 30]);
  });
});

describe("Pawl's own settings, by the rules for anybody's queue", () => {
  const of = (given: Partial<Settings>, seen: Parameters<typeof ownContract>[1] = {}) =>
    examine(ownContract({ settings: makeSettings(given) }, seen)).map(
      ({ severity, rule }) => `${severity} ${rule}`,
    );

  test.each([
    [{}],
    [{ ackWait: 1_000, maxDeliver: 10, duplicateWindow: 15_001 }],
    [{ ackWait: 3_600_000, retention: 90 * 86_400_000 }],
    [{ replicas: 3, queueBytes: -1 }],
  ])("%o have nothing wrong with them", (given) => {
    expect(of(given, { isCaptured: true, nats: { version: "2.10.0", asksWho: true } })).toEqual([]);
  });

  test("what the server and the deployment add is found by the same rules", () => {
    const nats = { version: "2.9.25", asksWho: true };
    expect(of({ duplicateWindow: 15_000 }, { nats, sync: "interval", isCaptured: false })).toEqual([
      "error server-too-old",
      "error advisories-uncaptured",
      "warning window-shorter-than-retries",
      "warning one-copy-unsynced",
    ]);
  });

  test("the value to set is said in the words of the settings", () => {
    const settings = makeSettings({ duplicateWindow: 15_000 });
    const config = { settings, nats: { url: "nats://127.0.0.1" }, store: "nats-kv" } as const;
    const { findings } = examineLive({ live: { ...WELL, settings }, config, unseen: [] });
    expect(findings).toEqual([
      expect.objectContaining({ subject: "the settings", set: "PAWL_DUPLICATE_WINDOW: more than 15s" }),
    ]);
  });
});

const ours = JSON.parse(
  readFileSync(new URL("../../infra/firestore.indexes.json", import.meta.url), "utf8"),
) as { indexes: { collectionGroup: string; fields: { fieldPath: string; order: string }[] }[] };

/** As Firestore's administration lists them. */
const listed = (namespace: string) =>
  ours.indexes.map(({ collectionGroup, fields }, i) => ({
    name: `projects/p/databases/(default)/collectionGroups/${collectionGroup.replace("pawl", namespace)}/indexes/${i}`,
    queryScope: "COLLECTION",
    state: "READY",
    fields: [...fields, { fieldPath: "__name__", order: fields.at(-1)?.order ?? "" }],
  }));
const policy = (group: string) => ({
  name: `projects/p/databases/(default)/collectionGroups/${group}/fields/expiresAt`,
});

describe("Firestore's indexes and TTL policies", () => {
  test("those that are ready are there, of the namespace", () => {
    const NONE = { missing: [], policies: [] };
    expect(firestoreFaults("pawl", listed("pawl"), [])).toEqual(NONE);
    expect(firestoreFaults("team-a", listed("team-a"), [policy("others")])).toEqual(NONE);
    expect(firestoreFaults("team-a", listed("pawl"), []).missing).toHaveLength(ours.indexes.length);
    const [first, ...rest] = listed("pawl");
    const building = [{ ...(first as NonNullable<typeof first>), state: "CREATING" }, ...rest];
    expect(firestoreFaults("pawl", building, [policy("pawl-tasks")])).toEqual({
      missing: ["pawl-tasks: shard ascending, updatedAt descending"],
      policies: ["pawl-tasks.expiresAt"],
    });
  });

  test("are asked for page by page; a refusal is a finding", async () => {
    const { privateKey } = await crypto.subtle.generateKey(
      {
        name: "RSASSA-PKCS1-v1_5",
        modulusLength: 2048,
        publicExponent: new Uint8Array([1, 0, 1]),
        hash: "SHA-256",
      },
      true,
      ["sign"],
    );
    const pem = Buffer.from(await crypto.subtle.exportKey("pkcs8", privateKey)).toString("base64");
    const private_key = `-----BEGIN PRIVATE KEY-----\n${pem}\n-----END PRIVATE KEY-----`;
    const key = JSON.stringify({ client_email: "a@p.test", private_key });
    const config = {
      settings: makeSettings(),
      nats: { url: "" },
      store: "firestore-rest",
      project: "p",
      key,
    } as const;
    let status = 200;
    vi.stubGlobal("fetch", async (asked: string | URL) => {
      const url = new URL(asked);
      if (url.host === "oauth2.googleapis.com") return Response.json({ access_token: "t", expires_in: 3600 });
      if (status !== 200) return new Response("", { status });
      expect(url.pathname).toMatch(
        /^\/v1\/projects\/p\/databases\/\(default\)\/collectionGroups\/-\/(indexes|fields)$/,
      );
      if (url.pathname.endsWith("fields")) {
        expect(url.searchParams.get("filter")).toBe("ttlConfig:*");
        return Response.json({});
      }
      const isSecond = url.searchParams.get("pageToken") === "2";
      const all = listed("pawl");
      return Response.json(
        isSecond ? { indexes: all.slice(5) } : { indexes: all.slice(0, 5), nextPageToken: "2" },
      );
    });
    const live: Seen = { ...WELL };
    await lookAtFirestore(live, config, []);
    expect(live).toMatchObject({ firestore: { missing: [], policies: [] }, refused: [] });
    status = 403;
    const refused: Seen = { ...WELL };
    await lookAtFirestore(refused, config, []);
    expect(refused.refused).toEqual([
      { what: "listing Firestore's indexes", reason: expect.stringContaining("403") },
    ]);
    expect(refused).not.toHaveProperty("firestore");
  });
});
