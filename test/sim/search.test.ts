import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { mutants } from "./mutants/guards.ts";
import { hunt } from "./mutants/hunt.ts";
import { mutated } from "./mutants/mutated.ts";
import { promises } from "./promises.ts";
import { search } from "./search.ts";

/** Another part of the seeds each day would find more, and be red by chance: `npm run sim` does that. */
test("no promise is broken by the first 150 seeds", { timeout: 300_000 }, async () => {
  const found = await search({ from: 1, seeds: 150, jobs: 2 });
  expect(found.broken).toBeUndefined();
  expect(found.seeds).toBe(150);
  // Faults did come true.
  expect(found.faults.dies).toBeGreaterThan(10);
});

describe("mutants", () => {
  test("each of at least 25 fits its source", () => {
    expect(mutants.length).toBeGreaterThanOrEqual(25);
    expect(new Set(mutants.map(({ name }) => name)).size).toBe(mutants.length);
    for (const { name, file, changes } of mutants) {
      const source = readFileSync(new URL(`../../shared/${file}`, import.meta.url), "utf8");
      expect(mutated(source, name, changes)).not.toBe(source);
    }
  });

  test("are in the docs as they are, each with what it broke, and so are the schedules that they stand for", () => {
    const docs = readFileSync(new URL("../../docs/simulator.md", import.meta.url), "utf8");
    const tableBelow = (heading: string) => {
      const lines = docs.split(`${heading} |`)[1]?.split("\n\n")[0]?.split("\n").slice(2) ?? [];
      return lines.map((line) =>
        line
          .split("|")
          .map((cell) => cell.trim())
          .slice(1, -1),
      ) as string[][];
    };
    const table = tableBelow("| mutant");
    const guards = table.map(([name, guard, seeds]) => [name, guard, seeds === "its plan"]);
    const all = mutants.map(({ name, guard, plan }) => [name, guard, plan !== undefined]);
    expect(guards.toSorted()).toEqual(all.toSorted());
    for (const [, , , promise] of table) expect(promises).toHaveProperty([promise as string]);

    const found = new Map(table.map(([name, , ...fate]) => [name, fate]));
    const schedules = tableBelow("| schedule | mutant");
    expect(schedules.length).toBeGreaterThanOrEqual(27);
    for (const [, name, ...fate] of schedules) expect([name, fate]).toEqual([name, found.get(name)]);

    const others = tableBelow("| schedule | what the simulation lacks").map(([, , tests = ""]) => tests);
    expect(others.length).toBeGreaterThanOrEqual(16);
    for (const tests of others) {
      const files = [...tests.matchAll(/`(test\/[^`]+\.test\.ts)`/g)].map(([, file]) => file as string);
      expect(files).not.toEqual([]);
      for (const file of files)
        expect([file, existsSync(new URL(`../../${file}`, import.meta.url))]).toEqual([file, true]);
    }
  });

  const quick = mutants.filter(({ isQuick }) => isQuick);
  test.each(quick)(
    "without the guard that $guard ($name), a promise is broken",
    { timeout: 300_000 },
    async (mutant) => {
      const { killedBy } = await hunt(mutant, { from: 1, seeds: 1_000, jobs: 1 });
      expect(killedBy).toBeDefined();
    },
  );
});

describe("the command", () => {
  const sim = (...args: string[]) => {
    const { status, stdout, stderr } = spawnSync(process.execPath, ["test/sim/main.ts", ...args], {
      cwd: new URL("../..", import.meta.url),
      encoding: "utf8",
    });
    return { status, stdout, stderr };
  };

  test("plays one seed, and tells its story", () => {
    const { status, stdout } = sim("--seed", "3");
    expect(stdout).toContain("Seed 3: ");
    expect(stdout).toMatch(/No promise was broken\. \(\d+ steps\)/);
    expect(status).toBe(0);
    expect(JSON.parse(sim("--seed", "3", "--json").stdout)).toMatchObject({ seed: 3, plan: { seed: 3 } });
  });

  test("says how it is used, and when it was used wrongly", () => {
    expect(sim("--help")).toMatchObject({
      status: 0,
      stdout: expect.stringContaining("npm run sim -- --seed"),
    });
    expect(sim("--seeds", "many")).toMatchObject({
      status: 2,
      stderr: expect.stringContaining("whole number"),
    });
  });
});
