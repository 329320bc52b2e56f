import { expect, test } from "vitest";
import { readable, stackOf } from "../../shared/runner/stack.ts";

const bundle = {
  stack: "Error\n    at index.js:9:30",
  files: ["agents/a.ts", "shared/handler/step.ts", "node_modules/zod"],
  // Row 1: agents/a.ts line 7 at 0, step.ts at 10, zod at 20.
  mappings: "AAO,UCP,UCA",
};
const at = (text: string, root = "file:///home/ann/pawl/") =>
  readable(`Error: x\n${text}`, bundle, root)
    .split("\n")
    .map((line) => line.trim());

test("a bundle's lines are the author's; a minifier's names and Pawl's own code are left out", () => {
  const stack =
    "    at a (index.js:1:3)\n    at async Object.run (index.js:1:6)\n    at b (index.js:1:12)\n    at parse (index.js:1:25)";
  expect(at(stack)).toEqual([
    "at agents/a.ts:7",
    "at async Object.run (agents/a.ts:7)",
    "at parse (node_modules/zod)",
  ]);
  expect(at("    at b (index.js:1:12)")).toEqual(["at shared/handler/step.ts"]);
});

test.each([
  ["file:///home/ann/pawl/agents/a.ts", "agents/a.ts"],
  ["/home/ann/pawl/agents/a.ts", "agents/a.ts"],
  ["file:///opt/elsewhere/agents/deep/b.ts", "…/deep/b.ts"],
  ["/home/ann/other/node_modules/zod/v4/core.js", "node_modules/zod/v4/core.js"],
  ["C:\\Users\\ann\\code\\b.ts", "…/code/b.ts"],
  ["file:///home/ann/pawl/node_modules/x/index.js", "node_modules/x/index.js"],
])("no machine's path is kept: %s", (path, shown) => {
  expect(at(`    at run (${path}:3:5)`)).toEqual([`at run (${shown}:3:5)`]);
});

test("what Node does inside is left out, and the rest is bounded", () => {
  const inside = "    at processTicksAndRejections (node:internal/process/task_queues:104:5)";
  expect(at(`${inside}\n    at async Promise.all (index 0)\n    at run (/x/y/z.ts:1:1)`)).toEqual([
    "at async Promise.all (index 0)",
    "at run (…/y/z.ts:1:1)",
  ]);
  const deep = Array.from({ length: 50 }, (_, i) => `    at f${i} (/x/y/${"z".repeat(100)}.ts:1:1)`).join(
    "\n",
  );
  expect(readable(`Error\n${deep}`, undefined, "").split("\n").length).toBeLessThanOrEqual(8);
  expect(readable(`Error\n${deep}`, undefined, "").length).toBeLessThanOrEqual(1_000);
});

test("an error of one's own has a stack that begins in its file", () => {
  expect(stackOf(new Error("x")).stack).toMatch(/^ {4}at .*test\/errors\/stack\.test\.ts:\d+:\d+/);
  expect(stackOf("thrown")).toEqual({});
});
