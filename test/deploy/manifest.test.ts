import { expect, test } from "vitest";
import type { KnownAgent } from "../../infra/agents.ts";
import { manifestOf, outdated, readManifest, writeManifest } from "../../infra/deploy/manifest.ts";

const agent = (name: string, more: Partial<KnownAgent> = {}): KnownAgent => ({
  name,
  lanes: 1,
  dispatchTimeout: 60_000,
  children: [],
  schedules: [],
  hasSchema: false,
  ...more,
});
const bundle = new TextEncoder().encode("code");
const kept = (PAWL_DEPLOYED: string) => readManifest({ PAWL_DEPLOYED });

test("what is written is read again, in letters that every shell and platform leaves alone", () => {
  const known = [agent("a-b", { inputSchema: { type: "object" } }), agent("c", { lanes: 3 })];
  const manifest = manifestOf(bundle, "api", known);
  const text = writeManifest(manifest);
  expect(text).toMatch(/^[\w.=&%+-]+$/);
  expect(kept(text)).toEqual(manifest);
  expect(outdated(manifest, "api", known)).toEqual([]);
  expect(readManifest({})).toBeUndefined();
});

test("each kind of function is outdated by what it carries, and by nothing else", () => {
  const schedule = { name: "main", cron: "0 6 * * 1", timezone: "UTC", input: {} };
  const before = [agent("a"), agent("gone")];
  const after = [agent("a", { schedules: [schedule], inputSchema: { type: "object" } }), agent("new")];
  const why = (kind: "dispatch" | "api" | "reconcile") =>
    outdated(manifestOf(bundle, kind, before), kind, after);
  expect(why("dispatch")).toEqual(["a's schedules changed", "gone is gone", "new is new"]);
  expect(why("api")).toEqual(["a's input changed", "gone is gone", "new is new"]);
  expect(why("reconcile")).toEqual(["gone is gone", "new is new"]);
  const slower = [agent("a", { dispatchTimeout: 120_000, lanes: 2 }), agent("gone")];
  expect(outdated(manifestOf(bundle, "dispatch", before), "dispatch", slower)).toEqual([
    "a's lanes: 1 → 2",
    "a's dispatchTimeout: 60000ms → 120000ms",
  ]);
});

test("of more agents than a variable can name, it is still known whether something changed", () => {
  const many = Array.from({ length: 500 }, (_, i) => agent(`agent-${i}`));
  const text = writeManifest(manifestOf(bundle, "api", many));
  expect(text.length).toBeLessThan(4_500);
  const manifest = kept(text);
  expect(manifest && outdated(manifest, "api", many)).toEqual([]);
  expect(manifest && outdated(manifest, "api", many.slice(1))).toEqual(["what it carries of the agents"]);
});
