import { type Accepted, accept as acceptPlainly } from "../dispatch/accept.ts";
import * as operate from "../dispatch/operate.ts";
import * as pausing from "../pause/pause.ts";
import type { Deps } from "../ports/deps.ts";
import { type SetQuotas, type Subject, setQuota as setPlainly, shownSubject } from "../quota/quotas.ts";
import { type Quota, showQuota } from "../settings/quota.ts";
import type { Task } from "../task/document.ts";
import { isJsonObject, type Json } from "../values/json.ts";
import { audited } from "./audited.ts";
import type { Deed } from "./entry.ts";

export type { Redrive, Resolution } from "../dispatch/operate.ts";

/** What people do to tasks, agents and quotas: as in `dispatch/` and `quota/`, and in the trail. */

const byTask = ({ agent }: Task): Partial<Deed> => ({ agent });

export function cancel(deps: Deps, id: string): Promise<Task> {
  return audited(deps, { op: "cancel", task: id }, () => operate.cancel(deps, id), byTask);
}

export function redrive(deps: Deps, id: string, how: operate.Redrive = {}): Promise<Task> {
  const { fromScratch, from } = how;
  const detail = fromScratch ? "from scratch" : from !== undefined ? `from ${from}` : undefined;
  const deed: Deed = { op: "redrive", task: id, ...(detail !== undefined && { detail }) };
  return audited(deps, deed, () => operate.redrive(deps, id, how), byTask);
}

export function resolve(...[deps, id, resolution, of]: Parameters<typeof operate.resolve>) {
  const detail = "fail" in resolution ? "given up" : resolution.happened ? "happened" : "did not happen";
  const work = () => operate.resolve(deps, id, resolution, of);
  return audited(deps, { op: "resolve", task: id, detail }, work, byTask);
}

export function signal(...[deps, id, name, value, question]: Parameters<typeof operate.signal>) {
  const work = () => operate.signal(deps, id, name, value, question);
  return audited(deps, { op: opOf(name, value), task: id, detail: name }, work, byTask);
}

/** An approval is a signal that says yes or no. */
function opOf(name: string, value: Json): Deed["op"] {
  if (!name.startsWith("approval:")) return "signal";
  return isJsonObject(value) && value.approved === true ? "approve" : "reject";
}

export async function accept(deps: Deps, id: string): Promise<Accepted> {
  const work = async () => {
    const accepted = await acceptPlainly(deps, id);
    // Before that nobody could say whose task it is. It is done in any case.
    const found = await deps.store.get(id).catch(() => undefined);
    return { accepted, agent: found?.task.agent };
  };
  const byAgent = ({ agent }: { agent: string | undefined }) => (agent === undefined ? {} : { agent });
  return (await audited(deps, { op: "accept", task: id }, work, byAgent)).accepted;
}

/** Without a quota, what was set for one is forgotten. */
export function setQuota(deps: Deps, subject: Subject, quota: Quota | undefined): Promise<SetQuotas> {
  const whose = shownSubject(subject);
  const deed: Deed = {
    op: quota ? "quota set" : "quota clear",
    ...(subject.kind === "agent" && { agent: subject.name }),
    detail: quota ? `${whose} ${showQuota(quota)}` : whose,
  };
  return audited(deps, deed, () => setPlainly(deps.store, subject, quota));
}

export function pauseAgent(deps: Deps, agent: string, why?: string): Promise<pausing.PauseChange> {
  return audited(deps, { op: "pause", agent }, () => pausing.pauseAgent(deps, agent, why));
}

export function resumeAgent(deps: Deps, agent: string): Promise<pausing.PauseChange> {
  return audited(deps, { op: "resume", agent }, () => pausing.resumeAgent(deps, agent));
}
