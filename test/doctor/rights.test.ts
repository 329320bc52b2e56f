import { describe, expect, test } from "vitest";
import { compare, covers, meet, type Rights } from "../../infra/creds/compare.ts";
import type { Identity } from "../../infra/creds/plan.ts";

test.each([
  ["a.>", "a.b", true],
  ["a.>", "a.b.>", true],
  ["a.>", "a.*.c", true],
  ["a.>", "a", false],
  ["a.*", "a.b", true],
  ["a.*", "a.>", false],
  ["a.*", "a.b.c", false],
  ["a.b", "a.*", false],
  [">", "a", true],
  ["a.b", "a.b q", true],
])("%s covers %s: %s", (wide, narrow, is) => {
  expect(covers(wide, narrow)).toBe(is);
});

test.each([
  ["a.*", "*.b", true],
  ["a.>", "*.b", true],
  ["a.b", "a.c", false],
  ["a", "a.>", false],
  ["a.*.c", "a.b.>", true],
])("%s and %s have a subject in common: %s", (one, other, is) => {
  expect([meet(one, other), meet(other, one)]).toEqual([is, is]);
});

describe("an identity's rights, against its plan", () => {
  const plan: Identity = {
    name: "a",
    publish: ["api.>", "kv.a.*"],
    denied: ["api.delete.>"],
    subscribe: ["inbox.a.>"],
    answers: false,
  };
  const asPlanned: Rights = {
    publish: { allow: plan.publish, deny: plan.denied },
    subscribe: { allow: plan.subscribe, deny: [] },
    answers: false,
  };
  const drift = (more: Partial<Rights>, of: Identity = plan) => compare(of, { ...asPlanned, ...more });

  test.each<[string, Partial<Rights>, readonly string[], readonly string[]]>([
    ["as planned", {}, [], []],
    ["one more", { publish: { allow: [...plan.publish, "x"], deny: plan.denied } }, ["publish to x"], []],
    [
      "in two, where one would do",
      { publish: { allow: [...plan.publish, "api.info"], deny: plan.denied } },
      [],
      [],
    ],
    ["one wider", { publish: { allow: ["api.>", "kv.*.*"], deny: plan.denied } }, ["publish to kv.*.*"], []],
    [
      "one narrower",
      { publish: { allow: ["api.info", "kv.a.*"], deny: plan.denied } },
      [],
      ["publish to api.>"],
    ],
    ["without the denial", { publish: { allow: plan.publish, deny: [] } }, ["publish to api.delete.>"], []],
    [
      "with another denial",
      { publish: { allow: plan.publish, deny: [...plan.denied, "kv.a.b"] } },
      [],
      ["publish to kv.a.b"],
    ],
    [
      "with a denial of what it may not do anyway",
      { publish: { allow: plan.publish, deny: [...plan.denied, "y"] } },
      [],
      [],
    ],
    [
      "one more that is denied",
      { publish: { allow: [...plan.publish, "x.y"], deny: [...plan.denied, "x.>"] } },
      [],
      [],
    ],
    ["everything to hear", { subscribe: { deny: [] } }, ["subscribe to >"], []],
    ["nothing to hear", { subscribe: { allow: [], deny: [] } }, [], ["subscribe to inbox.a.>"]],
    ["answers", { answers: true }, ["answer what it is asked"], []],
  ])("%s", (_, has, wide, lacks) => {
    expect(drift(has)).toEqual({ identity: "a", mayAll: false, wide, lacks });
  });

  test("who may publish everything may answer, and is said to may all only where nothing is denied", () => {
    const all = { publish: { deny: [] }, subscribe: { deny: [] } };
    expect(drift(all, { ...plan, answers: true })).toMatchObject({ mayAll: true, lacks: [] });
    expect(drift({ ...all, publish: { deny: ["x"] } }).mayAll).toBe(false);
    expect(drift({}, { ...plan, answers: true }).lacks).toEqual(["answer what it is asked"]);
  });
});
