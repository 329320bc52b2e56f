import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { readSubject } from "../../shared/quota/quotas.ts";
import { excess, limitsOf, noUsage, shownExcess, withCount, withSubmit } from "../../shared/quota/usage.ts";
import { type Quota, readQuota, showQuota } from "../../shared/settings/quota.ts";

const NOON = Date.UTC(2026, 10, 18, 12, 0, 0);
const MINUTE = 60_000;

describe("a quota as text", () => {
  test.each<[string, Quota]>([
    ["tasks=1000,bytes=64MB,submits=600,usd=2.50", { tasks: 1000, bytes: 64e6, submits: 600, usd: 2.5 }],
    ["bytes=50%,queue=16MB", { bytes: "50%", queue: 16e6 }],
    ["bytes=1GiB, tasks=none", { bytes: 1024 ** 3, tasks: null }],
    ["tasks=0", { tasks: 0 }],
    ["none", {}],
    ["", {}],
  ])("%s", (text, quota) => {
    expect(readQuota(text)).toEqual(quota);
    expect(readQuota(showQuota(quota))).toEqual(quota);
  });

  test.each([
    ["tasks=-1", /tasks is "-1"; it should be a whole number, or none/],
    ["bytes=101%", /bytes is "101%"/],
    ["bytes=64mb", /such as 64MB/],
    ["usd=1e3", /a number of dollars/],
    ["task=3", /no part "task=3". Write it as tasks=1000/],
    ["tasks=1=2", /no part/],
    ["tasks", /tasks is ""/],
  ])("%s is refused, with what it should be", (text, why) => expect(() => readQuota(text)).toThrow(why));

  test("is of an owner or an agent", () => {
    expect(readSubject("owner:ann@example.com")).toEqual({ kind: "owner", name: "ann@example.com" });
    expect(readSubject("agent:echo")).toEqual({ kind: "agent", name: "echo" });
    for (const wrong of ["ann", "owner:", "owner:a b", "agent:", "team:x"])
      expect(() => readSubject(wrong), wrong).toThrow();
  });
});

describe("limits", () => {
  const fill = (bytes: number) => ({ bytes, limit: 1_000 });
  test("a share is of the store's end, and none where it has none", () => {
    expect(limitsOf({ bytes: "50%" }, fill(600), 1)).toEqual({ bytes: 500 });
    expect(limitsOf({ bytes: "50%" }, undefined, 1)).toEqual({});
    expect(limitsOf({ tasks: 3, bytes: null }, undefined, 1)).toEqual({ tasks: 3 });
  });
  test("bytes need no counting while all that is stored is within them", () => {
    expect(limitsOf({ bytes: "50%" }, fill(499), 1)).toEqual({});
    expect(limitsOf({ bytes: "50%" }, fill(499), 2)).toEqual({ bytes: 500 });
    expect(limitsOf({ bytes: 400 }, undefined, 1)).toEqual({ bytes: 400 });
  });
});

describe("what goes beyond a quota", () => {
  const at = (now: number, bytes = 10, usd = 0) => ({ bytes, usd, now });
  const used = (count: number, now = NOON) => {
    let usage = noUsage("owner:ann");
    for (let i = 0; i < count; i++) usage = withSubmit(usage, 10, now);
    return usage;
  };

  test("is the first task or byte too many, and how long it may take", () => {
    expect(excess({ tasks: 3 }, used(2), at(NOON), 7)).toBeUndefined();
    expect(excess({ tasks: 3 }, used(3), at(NOON), 7)).toEqual({
      part: "tasks",
      used: 3,
      limit: 3,
      after: 7,
    });
    expect(excess({ bytes: 30 }, used(2), at(NOON), 7)).toBeUndefined();
    expect(excess({ bytes: 30 }, used(2), at(NOON, 11), 7)).toMatchObject({ part: "bytes", used: 20 });
  });

  test("dollars are refused from the limit on, until midnight UTC", () => {
    expect(excess({ usd: 5 }, used(9), at(NOON, 1, 4.99), 7)).toBeUndefined();
    const over = excess({ usd: 5 }, used(9), at(NOON, 1, 5.004), 7);
    expect(over).toMatchObject({ part: "usd", after: 12 * 3_600 });
    expect(over && shownExcess(over)).toBe(
      "has 5 of the 5 dollars spent since midnight UTC that its quota allows",
    );
  });

  test("of several, the one that passes latest is named", () => {
    expect(excess({ tasks: 1, submits: 1, usd: 0 }, used(1), at(NOON), 7)?.part).toBe("usd");
  });

  test("no sixty seconds have many more submits than the quota, whenever they come", () => {
    const pauses = fc.array(fc.integer({ min: 0, max: 20_000 }), { minLength: 10, maxLength: 200 });
    fc.assert(
      fc.property(pauses, fc.integer({ min: 1, max: 20 }), (steps, limit) => {
        let now = NOON;
        let usage = noUsage("owner:ann");
        const taken: number[] = [];
        for (const step of steps) {
          now += step;
          if (excess({ submits: limit }, usage, at(now), 7)) continue;
          usage = withSubmit(usage, 10, now);
          taken.push(now);
        }
        for (const first of taken) {
          // The minute before counts evenly, so a minute across two may have half as many more.
          const within = taken.filter((time) => time >= first && time < first + MINUTE).length;
          expect(within).toBeLessThanOrEqual(Math.ceil(1.5 * limit) + 1);
        }
      }),
    );
  });

  test("a count replaces what was added before it, and keeps what was added while it went on", () => {
    const before = used(10);
    const now = withSubmit(withSubmit(before, 10, NOON), 10, NOON);
    expect(withCount(now, before, { tasks: 4, bytes: 40 }, NOON)).toMatchObject({ tasks: 6, bytes: 60 });
  });
});
