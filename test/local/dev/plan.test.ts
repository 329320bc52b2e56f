import { expect, test } from "vitest";
import { type Builds, concerned, needsBuild } from "../../../infra/local/dev/changes/plan.ts";
import { coalesced } from "../../../infra/local/dev/changes/watch.ts";
import { deaths } from "../../../infra/local/dev/deaths.ts";

const bundle = (...inputs: string[]) => ({ file: "x.js", inputs, carries: "[]" });
const agent = (name: string) => ({
  name,
  lanes: 1,
  dispatchTimeout: 1,
  children: [],
  schedules: [],
  hasSchema: false,
  secrets: [],
});
const before: Builds = {
  agents: { a: agent("a"), b: agent("b") },
  bundles: { a: bundle("/a.ts", "/lib.ts"), b: bundle("/b.ts"), api: bundle("/api.ts") },
  scripts: { a: { file: "a.mjs", inputs: ["/a.model.ts"] } },
  problems: [],
};
const now = { names: ["a", "b"], scripts: ["a"] };

test("a change concerns what is made of it, what is not made yet, and what could not be made", () => {
  expect(concerned(["a", "b"], before.bundles, [], ["/lib.ts"])).toEqual(["a"]);
  expect(concerned(["a", "b", "new"], before.bundles, [], ["/other.ts"])).toEqual(["new"]);
  expect(concerned(["a", "b"], before.bundles, [{ name: "b", message: "broken" }], ["/other.ts"])).toEqual([
    "b",
  ]);
});

test("nothing is built for what nothing is made of", () => {
  expect(needsBuild(now, ["api"], before, ["/a.test.ts", "/.dev.vars"])).toBe(false);
  expect(needsBuild(now, ["api"], before, ["/a.model.ts"])).toBe(true);
  expect(needsBuild(now, ["api"], before, ["/api.ts"])).toBe(true);
  expect(needsBuild({ ...now, names: ["a"] }, ["api"], before, ["/b.ts"])).toBe(true);
  expect(needsBuild({ ...now, scripts: [] }, ["api"], before, ["/x"])).toBe(true);
});

test("what is asked for during a build is done once more, and not more often", async () => {
  const gates: (() => void)[] = [];
  const work = coalesced(() => new Promise<void>((resolve) => gates.push(resolve)));
  const first = work();
  for (let i = 0; i < 10; i++) void work();
  expect(gates).toHaveLength(1);
  gates[0]?.();
  await expect.poll(() => gates.length).toBe(2);
  gates[1]?.();
  await first;
  expect(gates).toHaveLength(2);
});

test("five deaths in a minute are too many, five in ten minutes are not", () => {
  let at = 0;
  const often = deaths(() => at);
  expect([often(), often(), often(), often(), often()]).toEqual([false, false, false, false, true]);
  const seldom = deaths(() => at);
  const slow = Array.from({ length: 10 }, () => {
    at += 20_000;
    return seldom();
  });
  expect(slow).not.toContain(true);
});
