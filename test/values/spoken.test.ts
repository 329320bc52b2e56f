import { expect, test } from "vitest";
import { dollars } from "../../shared/values/dollars.ts";
import { sayDuration } from "../../shared/values/duration.ts";

test.each([
  [-5, "0 ms"],
  [340.4, "340 ms"],
  [999.6, "1 s"],
  [1_340, "1.3 s"],
  [2_000, "2 s"],
  [9_960, "10 s"],
  [59_499, "59 s"],
  [59_999, "1 min"],
  [125_000, "2 min 5 s"],
  [3_599_900, "1 h"],
  [12_000_000, "3 h 20 min"],
  [86_399_999, "1 d"],
  [90_000_000, "1 d 1 h"],
])("%d ms are %s", (ms, said) => {
  expect(sayDuration(ms)).toBe(said);
});

test.each([
  [0, "$0"],
  [0.0007, "< $0.01"],
  [0.0051, "$0.01"],
  [0.3, "$0.30"],
  [1_204.1, "$1,204.10"],
  [-0.3, "-$0.30"],
])("%d dollars are %s", (usd, said) => {
  expect(dollars(usd)).toBe(said);
});
