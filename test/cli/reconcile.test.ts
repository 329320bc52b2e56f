import { expect, test } from "vitest";
import { submit } from "../../shared/dispatch/submit.ts";
import { LIST, type Listed, textName } from "../../shared/reconcile/books/reports.ts";
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

test("what a terminal would obey is shown in a report too, and means the same as JSON", async () => {
  await using nats = await testNats();
  const w = world(nats, "nats-kv");
  await using deps = await wired(w.config);
  const hostile = "task \u009b2J\u202e\u200b\u{e0041} of a stranger";
  const about = { name: "2026-W46", from: 0, to: 1, verdict: "v", ok: true, stamp: "s", figures: {} };
  const listed = about as unknown as Listed;
  const stored = { name: about.name, findings: [hostile] };
  await deps.store.putText(textName(listed, "json"), JSON.stringify(stored, undefined, 2));
  await deps.store.putText(textName(listed, "md"), `# Report\n${hostile}`);
  await deps.store.putRecord(LIST, JSON.stringify({ reports: [listed], marks: {} }));
  for (const form of [["--json"], ["--format", "json"], ["--format", "md"]]) {
    const command = pawl(w, ["report", ...form]);
    expect(await command.exited).toBe(0);
    expect(command.text(), form.join(" ")).toMatch(/^[ -~\n]+$/);
    if (form.at(-1) !== "md") expect(JSON.parse(command.text())).toEqual(stored);
  }
});
