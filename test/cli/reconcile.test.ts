import { expect, test } from "vitest";
import { submit } from "../../shared/dispatch/submit.ts";
import type { Task } from "../../shared/task/document.ts";
import { pawl } from "../support/servers/runners.ts";
import { testNats, wired, world } from "../support/servers/stores.ts";

test("pawl reconcile explains, pawl report shows, and both say by their exit codes whether all is well", async () => {
  await using nats = await testNats();
  const w = world(nats, "nats-kv");
  await using deps = await wired(w.config);
  const { namespace, generation } = w.config.settings;
  await deps.bus.ensure({ namespace, agent: "recorder", lane: 0, generation });
  const run = async (...args: string[]) => {
    const ran = pawl(w, args, { TEST_RECORD: "/dev/null" });
    return { code: await ran.exited, text: ran.text() };
  };
  const none = await run("report");
  expect(none).toMatchObject({
    code: 1,
    text: expect.stringMatching(/There is no report of any week. There is none yet/),
  });

  await submit(deps, { agent: "recorder", lanes: 1, id: "t", input: {} });
  await run("run", "recorder", "--drain");
  const clean = await run("reconcile");
  expect(clean.text).toMatch(/^All 1 sequences explained; nothing completed twice\.$/m);
  expect(clean.code).toBe(0);
  const json = JSON.parse((await run("reconcile", "--no-repair", "--json")).text) as {
    name: string;
    runs: number;
  };
  expect(json).toMatchObject({ runs: 2, name: expect.stringMatching(/^\d{4}-W\d\d$/) });

  const md = await run("report", "--week", json.name);
  expect(md.text).toContain("**All 1 sequences explained; nothing completed twice.**");
  expect((await run("report", "--format", "html")).text).toMatch(/^<!doctype html>/);
  expect(JSON.parse((await run("report", "--json")).text)).toMatchObject({ name: json.name });
  const listed = await run("report", "--list");
  expect(listed.text.trim().split("\n")).toHaveLength(2);
  expect(await run("report", "--week", "1999-W01")).toMatchObject({
    code: 1,
    text: expect.stringContaining(json.name),
  });

  // Nobody has dispatched it: something to do, and nothing broken.
  await submit(deps, { agent: "recorder", lanes: 1, id: "late", input: {}, at: Date.now() + 600_000 });
  const late = await deps.store.get("late");
  const overdue = { ...(late?.task as Task), dueAt: Date.now() - 3_600_000 } as Task;
  await deps.store.replace(overdue, late?.revision ?? "");
  const look = await run("reconcile", "--no-repair");
  expect(look.code).toBe(0);
  expect(look.text).toMatch(/^All 1 sequences explained; .* To do: overdue, 1 task \(see whether/m);
  expect((await run("report", "--list")).text).toMatch(/^\S+ +LOOK {3}All 1 sequences/m);
  const mended = await run("reconcile");
  expect(mended.code).toBe(0);
  expect(mended.text).toMatch(/^ {2}overdue {2}late: it is scheduled .* \(mended\)$/m);
  expect((await run("report", "--list")).text).not.toMatch(/LOOK/);

  // Somebody wrote to a document by hand.
  const found = await deps.store.get("t");
  await deps.store.replace({ ...(found?.task as Task), executions: 7, stamp: "x" }, found?.revision ?? "");
  const broken = await run("reconcile");
  expect(broken.code).toBe(1);
  expect(broken.text).toMatch(/executed unfenced {2}t: 7 starts are recorded, and 1 claims/);
  expect(broken.text).toMatch(/executed unfenced: Look at the task's history/);
  expect((await run("report", "--list")).text).toMatch(/BROKEN/);

  const again = await run("reconcile", "--from", "2000-01-01");
  expect(again).toMatchObject({
    code: 1,
    text: expect.stringMatching(/Broken: executed unfenced, 1 task \(look at/),
  });
  for (const wrong of [
    ["reconcile", "--to", "2026-01-01"],
    ["reconcile", "--from", "soon"],
    ["report", "--format", "pdf"],
    ["report", "--week", "a", "--month", "b"],
  ])
    expect((await run(...wrong)).code, wrong.join(" ")).toBe(2);
  for (const command of ["reconcile", "report", "demo"])
    expect((await run(command, "--help")).text).toMatch(/Example:/);
});
