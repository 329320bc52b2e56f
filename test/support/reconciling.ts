import { expect } from "vitest";
import type { Wired } from "../../functions/wiring/wire.node.ts";
import type { TaskStore } from "../../shared/ports/store.ts";
import { writers } from "../../shared/reconcile/page/writers.ts";
import { reconcile } from "../../shared/reconcile/reconcile.ts";
import type { Reconciled } from "../../shared/reconcile/write.ts";
import { recordText } from "../../shared/seal/seal.ts";
import type { Bench } from "./bench.ts";
import { later } from "./time/clocks.ts";

/** A whole reconciliation. */
export async function reconciled(
  deps: Wired,
  options: { repair?: boolean; lanes?: Readonly<Record<string, number>> } = {},
): Promise<Reconciled> {
  const { repair = false, ...known } = options;
  const done = await reconcile(deps, new AbortController().signal, { repair, writers, ...known });
  if (!done) throw new Error("it ran out of time");
  return done;
}

/** As a function does it: slice after slice, each with so many calls of the store, until it calls itself no more. */
export async function inSlices(
  deps: Wired,
  mostCalls: number,
  between: (slice: number) => Promise<void> = async () => {},
): Promise<Reconciled> {
  for (let slice = 1; ; slice++) {
    let goesOn = 0;
    const goOn = () => void goesOn++;
    const options = { repair: false, writers, slice: { mostCalls, goOn } };
    const done = await reconcile(deps, new AbortController().signal, options);
    expect(goesOn).toBe(done ? 0 : 1);
    if (done) return done;
    if (slice > 500) throw new Error("it does not end");
    await between(slice);
  }
}

/** Sets all clocks ahead, for what is to be long ago: this machine's and the servers'. */
export function ahead({ deps }: Bench, ms: number): void {
  Object.assign(deps, later(deps, ms));
}

/** Replaces some of what the store does. */
export function patched({ deps }: Bench, store: Partial<TaskStore>): void {
  Object.assign(deps, { store: { ...deps.store, ...store } });
}

/** A record of a reconciliation under way, as Pawl would have written it. */
export async function putProgress({ store, sealer }: Wired, progress: object): Promise<void> {
  const name = "reconcile-progress";
  const { seal: _, ...rest } = progress as { seal?: string };
  const seal = sealer.seal(recordText(name, JSON.stringify(rest)));
  const there = await store.getRecord(name);
  await store.putRecord(name, JSON.stringify({ ...rest, seal }), there?.revision);
}

/** What was found, by kind and what it is about. */
export function namesOf({ report }: Reconciled): string[] {
  return report.findings.named.map(({ kind, subject }) => `${kind} ${subject}`);
}
