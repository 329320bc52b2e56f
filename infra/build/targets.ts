export const TARGETS = ["cloudflare", "gcp"] as const;
export type Target = (typeof TARGETS)[number];
/** Functions of Pawl's own; every other name is an agent's. */
export const OWN_FUNCTIONS = ["api", "dispatch", "reconcile"] as const;
export type FunctionKind = "agent" | (typeof OWN_FUNCTIONS)[number];

export function kindOf(name: string): FunctionKind {
  return OWN_FUNCTIONS.find((own) => own === name) ?? "agent";
}

export const kib = (bytes: number) => Math.ceil(bytes / 1024);
