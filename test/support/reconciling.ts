import type { Wired } from "../../functions/wire.node.ts";
import { type Reconciled, reconcile } from "../../shared/journey/reconcile-report.ts";
import { writers } from "../../shared/report/writers.ts";

/** A whole reconciliation. */
export async function reconciled(deps: Wired, options: { repair?: boolean } = {}): Promise<Reconciled> {
  const { repair = false } = options;
  const done = await reconcile(deps, new AbortController().signal, { repair, writers });
  if (!done) throw new Error("it ran out of time");
  return done;
}

/** What was found, by kind and what it is about. */
export function namesOf({ report }: Reconciled): string[] {
  return report.findings.named.map(({ kind, subject }) => `${kind} ${subject}`);
}
