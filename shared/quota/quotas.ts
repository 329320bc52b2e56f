import { PawlError } from "../errors/errors.ts";
import type { Deps } from "../ports/deps.ts";
import type { TaskStore } from "../ports/store.ts";
import { policies } from "../retry/policies.ts";
import type { Quota } from "../settings/quota.ts";
import { checkAgentName } from "../task/names.ts";

/** Whose tasks a quota limits. */
export interface Subject {
  readonly kind: "owner" | "agent";
  readonly name: string;
}

export const shownSubject = ({ kind, name }: Subject): string => `${kind}:${name}`;

/** "owner:web-shop", "agent:echo" */
export function readSubject(text: string): Subject {
  const [, kind, name = ""] = /^(owner|agent):(.+)$/.exec(text) ?? [];
  if (kind === "agent") return { kind, name: checkAgentName(name) };
  if (kind === "owner" && /^[\w.@-]{1,128}$/.test(name)) return { kind, name };
  throw new PawlError(
    "input_invalid",
    `${JSON.stringify(text.slice(0, 200))} names nobody who has a quota. Write owner:<name> or agent:<name>`,
  );
}

/** What an operator set, by `shownSubject`. Who is not among them has the settings' quota. */
export type SetQuotas = Readonly<Record<string, Quota>>;

const RECORD = "quotas";

export async function readQuotas(store: Pick<TaskStore, "getRecord">): Promise<SetQuotas> {
  const found = await store.getRecord(RECORD);
  return found ? (JSON.parse(found.text) as SetQuotas) : {};
}

/** The parts that are given replace those that were set; without any quota, all of the subject's are forgotten. */
export async function setQuota(
  store: Pick<TaskStore, "getRecord" | "putRecord">,
  subject: Subject,
  quota: Quota | undefined,
): Promise<SetQuotas> {
  const key = shownSubject(subject);
  for (let tries = 0; tries < policies.counters.tries; tries++) {
    const found = await store.getRecord(RECORD);
    const { [key]: before, ...others } = found ? (JSON.parse(found.text) as SetQuotas) : {};
    const after: SetQuotas = quota ? { ...others, [key]: { ...before, ...quota } } : others;
    const written = await store.putRecord(RECORD, JSON.stringify(after), found?.revision);
    if (written.kind === "written") return after;
  }
  throw new PawlError(
    "store_unavailable",
    `The quota of ${key} was not set: others write quotas too. Try again`,
  );
}

/** What holds for one of them: the settings' quota, and what an operator set instead. */
export function quotaOf({ settings }: Pick<Deps, "settings">, set: SetQuotas, subject: Subject): Quota {
  const byDefault = subject.kind === "owner" ? settings.ownerQuota : settings.agentQuota;
  return { ...byDefault, ...set[shownSubject(subject)] };
}

/** Its tasks' documents are in several buckets: each agent has one of its own. */
export function isSplit({ isolation }: Deps["settings"], { kind }: Subject): boolean {
  return kind === "owner" && isolation !== "shared";
}
