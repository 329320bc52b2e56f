import { randomUUID } from "node:crypto";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { StoreKind } from "../../../functions/wiring/config.ts";
import type { LocalNats } from "../../../infra/local/nats-server.ts";
import type { AgentContext } from "../../../shared/agent.ts";
import { agentOf } from "../../support/bench.ts";
import { requests, type Wild } from "../../support/faults/wild.ts";
import { ALL } from "../../support/http/api.ts";
import { type Answer, webStage } from "../../support/http/web.ts";
import { stores, testNats } from "../../support/servers/stores.ts";

let nats: LocalNats;
const rejections: unknown[] = [];
const note = (reason: unknown) => void rejections.push(reason);
beforeAll(async () => {
  process.on("unhandledRejection", note);
  nats = await testNats();
});
afterAll(async () => {
  process.off("unhandledRejection", note);
  await nats.stop();
});

/** In everything that Bob's tasks consist of. */
const SECRET = `secret-${randomUUID()}`;
/** Does what its input says, in Bob's words. */
async function told({ input, approval }: AgentContext<unknown>): Promise<unknown> {
  const { what } = input as { what?: string };
  if (what === "fail") throw new Error(SECRET);
  if (what === "wait") await approval("go", { summary: SECRET });
  return input as object;
}

/** Ann has one task, Bob one of each kind. Ann may read and submit; Otto does everything, but for another agent only. */
async function stage(kind: StoreKind) {
  const s = await webStage(nats, kind);
  const bob = await s.token("bob", ALL);
  const [ann, otto] = [await s.token("ann"), await s.token("otto", ALL, ["other"])];
  const bobs: string[] = [];
  const submit = async (token: string, body: object, headers = {}) => {
    const made = await s.ask("/v1/tasks", {
      token,
      method: "POST",
      body: { agent: "tested", ...body },
      headers,
    });
    expect(made.status).toBe(201);
    return made.json?.id as string;
  };
  const labels = { team: SECRET };
  for (const what of ["done", "fail", "wait"])
    bobs.push(await submit(bob, { input: { what, is: SECRET }, labels, id: `bobs-${what}-${randomUUID()}` }));
  const anns = await submit(ann, { input: { what: "ann" }, id: "anns" });
  await s.drain(agentOf(told, { attempts: 1 }));
  bobs.push(await submit(bob, { input: { is: SECRET }, labels }, { "idempotency-key": "order 1" }));
  const later = { at: "2099-01-01T00:00:00Z", orderingKey: SECRET };
  bobs.push(await submit(bob, { input: { is: SECRET }, ...later }));
  const states = await Promise.all(bobs.map(async (id) => (await s.task(id)).state));
  expect(states).toEqual(["completed", "failed", "waiting", "dispatched", "scheduled"]);
  return Object.assign(s, { ann, otto, bob, anns, bobs });
}
type Stage = Awaited<ReturnType<typeof stage>>;

const shownAs = (answer: Answer, { path, asked }: Wild) =>
  `${asked.method} ${path.slice(0, 200)} ${answer.status} ${answer.text.slice(0, 300)}`;

function isSound(answer: Answer, wild: Wild): void {
  const what = shownAs(answer, wild);
  expect(answer.status, what).toBeLessThan(500);
  if (answer.status >= 400 && wild.asked.method !== "HEAD")
    expect(answer.json, what).toMatchObject({ status: answer.status, code: expect.any(String) });
}

function isSilent(answer: Answer, wild: Wild, s: Stage): void {
  const { path, asked } = wild;
  const what = shownAs(answer, wild);
  const said = `${answer.text}${JSON.stringify([...answer.headers])}`;
  expect(said, what).not.toContain(SECRET);
  // A refusal may repeat what it was asked for.
  const sent =
    decodeURIComponent(path.replaceAll(/%(?![0-9a-f]{2})|%[89a-f]./gi, "")) + JSON.stringify(asked);
  for (const id of s.bobs) if (!sent.includes(id)) expect(said, what).not.toContain(id);
}

/** A stream is read as far as it has come. */
async function answered(s: Stage, token: string, { path, asked }: Wild): Promise<Answer> {
  const response = await s.request(path, { ...asked, token });
  if (!response.headers.get("content-type")?.includes("event-stream")) return s.readAnswer(response);
  const reader = response.body?.getReader();
  const first = await reader?.read();
  await reader?.cancel();
  return {
    status: response.status,
    headers: response.headers,
    text: new TextDecoder().decode(first?.value),
    json: undefined,
  };
}

const kinds = stores.filter(({ kind }) => kind !== "firestore");

describe.each(kinds)("$kind", ({ kind, here }) => {
  const numRuns = kind === "nats-kv" ? 800 : 300;

  test.skipIf(!here)("no request whatever makes it fail, or shows one owner what is another's", async () => {
    await using s = await stage(kind);
    const statuses = new Map<number, number>();
    const before = await Promise.all(s.bobs.map((id) => s.task(id)));
    await fc.assert(
      fc.asyncProperty(requests([...s.bobs, s.anns]), fc.constantFrom(s.ann, s.otto), async (wild, token) => {
        const answer = await answered(s, token, wild);
        statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1);
        isSound(answer, wild);
        isSilent(answer, wild, s);
      }),
      { numRuns },
    );
    expect([...statuses.keys()].toSorted()).toEqual(expect.arrayContaining([200, 201, 403, 404, 422]));
    // Nor did it change what is another's, or anything of this process's own.
    expect(await Promise.all(s.bobs.map((id) => s.task(id)))).toEqual(before);
    expect(({} as { polluted?: true }).polluted).toBeUndefined();
    expect(rejections).toEqual([]);
  });

  test.skipIf(!here)("nothing that an operator sends makes it fail either", async () => {
    await using s = await stage(kind);
    const boss = await s.token("boss", ALL);
    const statuses = new Set<number>();
    await fc.assert(
      fc.asyncProperty(requests(s.bobs), async (wild) => {
        const answer = await answered(s, boss, wild);
        statuses.add(answer.status);
        isSound(answer, wild);
      }),
      { numRuns: numRuns / 2 },
    );
    expect([...statuses]).toEqual(expect.arrayContaining([200, 201, 404, 422]));
    expect(rejections).toEqual([]);
  });

  test.skipIf(!here)("another owner's cursor leads through one's own tasks only", async () => {
    await using s = await stage(kind);
    const page = await s.ask("/v1/tasks?limit=1", { token: s.bob });
    const cursor = page.json?.cursor as string;
    expect(cursor).toBeTypeOf("string");
    const seen = await s.ask(`/v1/tasks?cursor=${cursor}`, { token: s.ann });
    expect([seen.status, seen.json?.tasks]).toEqual([200, [expect.objectContaining({ id: "anns" })]]);
    const none = await s.ask(`/v1/tasks?cursor=${cursor}`, { token: s.otto });
    expect([none.status, none.json?.tasks]).toEqual([200, []]);
  });

  test.skipIf(!here)("only a token in its exact form is one", async () => {
    await using s = await stage(kind);
    const header = fc.oneof(
      fc.string({ unit: "binary-ascii", maxLength: 80 }),
      fc.constantFrom(
        s.ann,
        `Bearer ${s.ann}x`,
        `Bearer ${s.ann.slice(0, -1)}`,
        `Bearer ${s.ann} ${s.bob}`,
        `Basic ${s.ann}`,
      ),
      fc.constantFrom(
        `Bearer  ${s.ann}`,
        `Bearer "${s.ann}"`,
        `Bearer ${s.ann.toUpperCase()}`,
        `Bearer pawl_${"_".repeat(43)}`,
      ),
      fc.constantFrom(
        "Bearer",
        "Bearer ",
        "Bearer pawl_",
        `Bearer pawl_${"../".repeat(14)}x`,
        `Bearer ${s.ann},${s.ann}`,
      ),
    );
    await fc.assert(
      fc.asyncProperty(header, async (text) => {
        const authorization = text.replaceAll(/[^\x20-\x7e]/g, "~");
        const answer = await s.ask("/v1/tasks", { headers: { authorization } });
        expect([answer.status, answer.json?.code], text).toEqual([401, "unauthorised"]);
      }),
      { numRuns: 200 },
    );
    for (const authorization of [`Bearer ${s.ann}`, `bearer ${s.ann}`])
      expect((await s.ask("/v1/tasks", { headers: { authorization } })).status).toBe(200);
  });
});

const restIsHere = kinds.some(({ kind, here }) => here && kind === "firestore-rest");
test.skipIf(!restIsHere)("a cursor that no page ever gave is refused as one", async () => {
  await using s = await stage("firestore-rest");
  for (const cursor of ["999999999999999.a", "253402300800000.a", "1.__x__", "1.", ".a", "a.1"])
    expect(await s.ask(`/v1/tasks?cursor=${cursor}`, { token: s.ann }), cursor).toMatchObject({
      status: 422,
      json: { code: "input_invalid" },
    });
});
