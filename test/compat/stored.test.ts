import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { Fatal } from "../../shared/agent.ts";
import { queueOf } from "../../shared/dispatch/dispatch.ts";
import { cancel, redrive, resolve, signal } from "../../shared/dispatch/operate.ts";
import { submit } from "../../shared/dispatch/submit.ts";
import { dispatchDue } from "../../shared/dispatch/sweep.ts";
import { readJournal } from "../../shared/journal/journal.ts";
import { serve } from "../../shared/runner/serve.ts";
import { makeSettings } from "../../shared/settings/settings.ts";
import { approvalSignal } from "../../shared/task/signals.ts";
import { states } from "../../shared/task/table.ts";
import { scripted } from "../../shared/testing/scripted-model.ts";
import { AGENT, agentOf, untilAborted } from "../support/bench.ts";
import { testNats, wired, worldOf } from "../support/servers/stores.ts";
import { until } from "../support/time/until.ts";
import { type Kept, keep, putBack } from "./streams.ts";

// What a version of Pawl has stored, later ones have to read and to go on from. A version is recorded once, when it is
// released, and never again: TEST_RECORD=0.1.0 npx vitest run test/compat
const RECORD = process.env.TEST_RECORD;
const NAMESPACE = "kept";
const folder = join(import.meta.dirname, "recorded");

/** `version`: what the model says of itself. */
async function opened(nats: LocalNats, version: string) {
  const day = 86_400_000;
  // What was stored is looked at for longer than anybody would keep it.
  const settings = makeSettings({ namespace: NAMESPACE, ackWait: 2_000, retention: 3_650 * day });
  const deps = await wired(worldOf(nats, { settings, nats: { url: nats.url }, store: "nats-kv" }).config);
  return Object.assign(deps, { model: scripted(() => version) });
}

/** One agent of all versions. `version`: whose code runs, as the journal keeps it; `acts`: what it did to the world. */
function agent(version: string, acts: string[], begun?: () => void) {
  return agentOf(async ({ input, step, effect, llm, approval, sleep, signal: stop }) => {
    const { does } = input as { does: string };
    const made = await step("make", () => ({ version, list: [1, "ü", null] }));
    const receipt = await effect("send", {
      run: (key) => {
        acts.push(key);
        if (does === "doubts") throw new Error("the connection is gone");
        return version;
      },
    });
    const { text } = await llm("ask", { model: "claude-haiku-4-5", prompt: "Which version?", maxTokens: 20 });
    if (does === "waits") await approval("go", { summary: "May it go on?" });
    if (does === "sleeps") await sleep("1m");
    if (does === "fails") throw new Fatal("it can't be done");
    if (does === "runs" && begun) {
      begun();
      await untilAborted(stop);
    }
    const last = await step("last", () => version);
    return { made, receipt, text, last };
  });
}

const TASKS = ["ends", "waits", "sleeps", "fails", "doubts", "runs", "queued", "cancelled"];

const record = async () => {
  const version = RECORD as string;
  await using nats = await testNats();
  await using deps = await opened(nats, version);
  await deps.bus.ensure(queueOf(deps, { agent: AGENT, lane: 0 }));
  const stop = new AbortController();
  const put = (does: string, more = {}) =>
    submit(deps, { agent: AGENT, lanes: 1, id: `t-${does}`, input: { does }, ...more });
  await put("cancelled", { at: Date.now() + 3_600_000 });
  await cancel(deps, "t-cancelled");
  for (const does of ["ends", "waits", "sleeps", "fails", "doubts"]) await put(does);
  const drain = { name: AGENT, agent: agent(version, []), mode: "drain", stop: stop.signal } as const;
  await until("the doubt", async () => {
    await dispatchDue(deps, AGENT, stop.signal, drain.agent.limits);
    await serve(deps, drain);
    return (await deps.store.get("t-doubts"))?.task.state === "in_doubt";
  });
  await put("runs");
  const begun = Promise.withResolvers<void>();
  const served = serve(deps, { ...drain, agent: agent(version, [], begun.resolve) });
  await begun.promise;
  await put("queued");
  const kept: Kept = { version, namespace: NAMESPACE, streams: await keep(deps.nc) };
  writeFileSync(join(folder, `${version}.json`), `${JSON.stringify(kept, null, 1)}\n`);
  stop.abort();
  await served;
};
if (RECORD) test("what this version stores is kept", record);

const versions = readdirSync(folder).filter((file) => file.endsWith(".json"));

test.each(versions)("what was stored by %s is read, and gone on with where it was", async (file) => {
  const kept = JSON.parse(readFileSync(join(folder, file), "utf8")) as Kept;
  const { version } = kept;
  await using nats = await testNats();
  await using deps = await opened(nats, "now");
  await putBack(deps.nc, kept);
  const task = async (does: string) => (await deps.store.get(`t-${does}`))?.task;
  const found = await Promise.all(TASKS.map(async (does) => (await task(does))?.state));
  expect(found).toEqual([
    ...["completed", "waiting", "scheduled", "failed", "in_doubt", "running", "dispatched", "cancelled"],
  ]);
  expect([...new Set(found)].sort()).toEqual([...states].sort());
  expect((await deps.store.list({}, 20)).tasks.map(({ id }) => id).sort()).toEqual(
    TASKS.map((does) => `t-${does}`).sort(),
  );
  const made = { version, list: [1, "ü", null] };
  expect(await task("ends")).toMatchObject({
    result: { made, receipt: version, text: version, last: version },
  });
  const journal = await readJournal(deps, "t-waits", () => {});
  expect(journal?.entries.length).toBeGreaterThan(2);

  // Whatever held it is gone: people answer, time passes, a lease is over, what failed is tried again.
  const acts: string[] = [];
  await signal(deps, "t-waits", approvalSignal("go"), { approved: true, by: "ada" });
  await resolve(deps, "t-doubts", { happened: true, receipt: "looked up" });
  await redrive(deps, "t-fails");
  const now = agent("now", acts);
  await until("every task is over", async () => {
    await dispatchDue(deps, AGENT, new AbortController().signal, now.limits);
    await serve(deps, { name: AGENT, agent: now, mode: "drain", stop: new AbortController().signal });
    const { tasks } = await deps.store.list({}, 20);
    return tasks.every(({ state }) => ["completed", "failed", "cancelled"].includes(state));
  });
  // What was journaled then is not done again; what came after is done by today's code.
  const gone = { made, receipt: version, text: version, last: "now" };
  for (const does of ["waits", "sleeps", "runs"])
    expect(await task(does), does).toMatchObject({ state: "completed", result: gone });
  expect(await task("doubts")).toMatchObject({ result: { ...gone, receipt: "looked up", text: "now" } });
  expect(await task("fails")).toMatchObject({ state: "failed", error: { message: "it can't be done" } });
  expect(await task("queued")).toMatchObject({ result: { receipt: "now", last: "now" } });
  expect(acts).toHaveLength(1);
});
