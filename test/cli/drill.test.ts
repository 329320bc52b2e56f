import { expect, inject, test } from "vitest";
import { drills } from "../../infra/drills/table.ts";
import { startProcess } from "../support/servers/runners.ts";

const drill = async (args: readonly string[], env: Record<string, string> = {}) => {
  const run = startProcess([inject("programs").pawl, "drill", ...args], env);
  return { code: await run.exited, text: run.text() };
};

test("--list says which there are; whoever uses it wrongly is told how, and ends with 2", async () => {
  const env = { NATS_URL: "nats://127.0.0.1:1", PAWL_STORE: "nats-kv" };
  const [list, json, nothing, unknown, both, live, impossible] = await Promise.all([
    drill(["--list"]),
    drill(["--list", "--json", "zombie-ack"]),
    drill([]),
    drill(["zombie"]),
    drill(["zombie-ack", "--all"]),
    drill(["--all", "--target", "pawl"], env),
    drill(["zombie-ack", "--target", "staging-drills"], env),
  ]);
  expect(list.code).toBe(0);
  for (const { name } of drills) expect(list.text).toContain(name);
  expect(JSON.parse(json.text)).toMatchObject({ name: "zombie-ack", promise: "no overlap", target: false });
  expect([nothing.code, nothing.text]).toEqual([2, expect.stringContaining("Name a drill, or say --all")]);
  expect([unknown.code, unknown.text]).toEqual([2, expect.stringContaining('There is no drill "zombie"')]);
  expect([both.code, both.text]).toEqual([2, expect.stringContaining("not both")]);
  expect([live.code, live.text]).toEqual([
    2,
    expect.stringContaining("--target pawl is the namespace that these settings run in"),
  ]);
  expect([impossible.code, impossible.text]).toEqual([
    2,
    expect.stringContaining("zombie-ack can't be run on a target"),
  ]);
});
