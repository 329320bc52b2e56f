import { expect, test } from "vitest";
import { type Channel, channels, faultKinds, planOf } from "./plan.ts";

const some = (channel: Channel, seed: string, count = 300) => {
  const plan = planOf(channel, seed);
  return Array.from({ length: count }, () => plan.next().value);
};

test("a seed is a plan, the same every time, and another seed another one", () => {
  for (const channel of Object.keys(channels) as Channel[]) {
    expect(some(channel, "7")).toEqual(some(channel, "7"));
    expect(some(channel, "7")).not.toEqual(some(channel, "8"));
  }
});

test("every kind of fault of a channel comes, as often and as long as the tables say", () => {
  for (const [channel, { every, kinds }] of Object.entries(channels)) {
    const planned = some(channel as Channel, "7");
    expect(new Set(planned.map(({ kind }) => kind))).toEqual(new Set(kinds));
    for (const { kind, after, lasts, pick } of planned) {
      const [least, most] = faultKinds[kind].lasts;
      expect([after >= every[0], after <= every[1], lasts >= least, lasts <= most]).toEqual(
        Array(4).fill(true),
      );
      expect(pick >= 0 && pick < 1).toBe(true);
    }
  }
});
