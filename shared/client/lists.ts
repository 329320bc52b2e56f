import type { Connection } from "./connection.ts";
import { type List, listOf } from "./pages.ts";
import { askJson, type CallOptions } from "./request.ts";
import type { State, TaskSummary } from "./task.ts";

/** Which dead letters are meant: all of these. */
export interface DeadLetterFilter extends CallOptions {
  /** An agent's name. */
  readonly agent?: string;
  /** Whose they are: another owner's only for tokens that may `operate`. */
  readonly owner?: string;
  /** The code that it failed with. */
  readonly error?: string;
  /** A label and its value, "team=docs", or a label with any value. */
  readonly label?: string;
  /** Tasks of one page, 50 by default, 200 at most. */
  readonly pageSize?: number;
}

/** Which tasks are meant: all of these. */
export interface TaskFilter extends DeadLetterFilter {
  /** The state that they are in. */
  readonly state?: State;
}

/** Of a change of all tasks that match. */
export interface SeveralOptions {
  /** Says that every task is meant, where nothing else says which. */
  readonly all?: true;
  /** Only counts them, and names the first. */
  readonly dryRun?: boolean;
  /**
   * The `until` of a dry run: what came or changed since then is left alone. With it a lost answer is asked for again by
   * itself; without it, it is now.
   */
  readonly until?: number;
}

/** What a change of several tasks came to. */
export interface Several {
  /** How many it was done to; of a dry run, how many it would be done to. Not those of an answer that was lost. */
  readonly count: number;
  /** Which; of a dry run some of them, the last changed first. */
  readonly ids: readonly string[];
  /** Those that could not be, such as for having moved on, and why. */
  readonly skipped: readonly { readonly id: string; readonly code: string; readonly detail: string }[];
  /** What changed after that was left alone, in milliseconds since 1970. */
  readonly until: number;
}

/** Which entries of the audit trail are meant: all of these. */
export interface AuditFilter extends CallOptions {
  /** From then on. */
  readonly since?: Date | string;
  /** Until then. */
  readonly until?: Date | string;
  /** Who did it. */
  readonly actor?: string;
  /** To which task. */
  readonly task?: string;
  /** What was done: "cancel", "redrive", … */
  readonly op?: string;
  /** Entries of one page, 50 by default, 200 at most. */
  readonly pageSize?: number;
}

/** An entry of the audit trail: who did what, and what became of it. */
export interface AuditEntry {
  /** 1, 2, 3, without a gap. */
  readonly n: number;
  /** When, in milliseconds since 1970. */
  readonly at: number;
  /** Who, with which token, and how. */
  readonly actor: {
    readonly name: string;
    readonly token?: string;
    readonly via: "api" | "dashboard" | "cli";
  };
  /** What: "cancel", "redrive", … */
  readonly op: string;
  /** To which task. */
  readonly task?: string;
  /** Of which agent. */
  readonly agent?: string;
  /** The id of the token that was made or revoked. */
  readonly token?: string;
  /** What else matters of it. */
  readonly detail?: string;
  /** "asked" before anything is done; one of the others follows. */
  readonly outcome: "asked" | "done" | "refused" | "unknown";
  /** Why it was refused. */
  readonly code?: string;
  /** The entry that this one is the outcome of. */
  readonly of?: number;
}

/** An agent, and what is in its queues. */
export interface AgentStatus {
  /** Its name. */
  readonly name: string;
  /** How many of its tasks run at once, at most. */
  readonly lanes: number;
  /** Tasks that nobody has taken. */
  readonly pending: number;
  /** Taken, and not acked. */
  readonly inFlight: number;
  /** Of these, deliveries under way for the second time or more. */
  readonly redelivered: number;
  /** Of the oldest message, in milliseconds. */
  readonly oldestAge: number;
  /** What its input must be, as JSON Schema, as far as that can say it. */
  readonly inputSchema?: object;
  /** Set while nothing new of it begins. */
  readonly paused?: Pause;
}

/** Since when an agent is paused, in milliseconds since 1970, by whom, and why. */
export interface Pause {
  /** Since then. */
  readonly at: number;
  /** Who paused it, and how. */
  readonly by: string;
  /** In their words. */
  readonly why?: string;
}

/** What a pause or a resume came to. */
export interface PauseChange {
  /** Its name. */
  readonly agent: string;
  /** How it is now. */
  readonly paused?: Pause;
  /** How it was: a second pause changes nothing. */
  readonly before?: Pause;
}

/** Whether all is well, beyond that there was an answer. */
export interface Health {
  /** Submits are taken. */
  readonly ok: true;
  /** How full the store is, where it has an end. */
  readonly store?: { readonly bytes: number; readonly limit: number };
  /** Agents whose submits are refused. */
  readonly refusing?: readonly string[];
}

/** What is asked of all tasks and agents. */
export interface Lists {
  /** Tasks that the token may see. */
  tasks(filter?: TaskFilter): List<TaskSummary>;
  /** Those that failed. */
  deadLetters(filter?: DeadLetterFilter): List<TaskSummary>;
  /** Cancels all that match, slice by slice, and resolves when all are done. For tokens that may `operate`. */
  cancelAll(which: Omit<TaskFilter, "pageSize"> & SeveralOptions): Promise<Several>;
  /** Redrives all dead letters that match. */
  redriveAll(which: Omit<DeadLetterFilter, "pageSize"> & SeveralOptions): Promise<Several>;
  /** Who did what, the newest first. */
  audit(filter?: AuditFilter): List<AuditEntry>;
  /** Agents, and what is in their queues. */
  agents(options?: CallOptions): Promise<readonly AgentStatus[]>;
  /** Nothing new of the agent begins, within five seconds; what runs goes on. For tokens that may `operate`. */
  pause(agent: string, options?: CallOptions & { readonly why?: string }): Promise<PauseChange>;
  /** It begins again. */
  resume(agent: string, options?: CallOptions): Promise<PauseChange>;
  /** Whether its servers answer and submits are taken; a `Problem` where not. */
  health(options?: CallOptions): Promise<Health>;
}

export function listsOf(connection: Connection): Lists {
  const read = <T>(path: string, { signal }: CallOptions = {}, query = {}): Promise<T> =>
    askJson(connection, { path, query, signal, isRepeatable: true });
  // Done twice it is as if it was done once.
  const change = (agent: string, verb: string, body: object, signal: AbortSignal | undefined) =>
    askJson<PauseChange>(connection, {
      path: `/v1/agents/${encodeURIComponent(agent)}/${verb}`,
      body,
      signal,
      isRepeatable: true,
    });
  const tasksAt = (path: string, { signal, pageSize: limit, ...filter }: TaskFilter) =>
    listOf(async (cursor) => {
      const query = { ...filter, limit, cursor };
      const { tasks: items, ...next } = await read<{ tasks: TaskSummary[] }>(path, { signal }, query);
      return { items, ...next };
    });
  const several = async (path: string, { signal, ...which }: TaskFilter & SeveralOptions) => {
    let { until } = which;
    let count = 0;
    const ids: string[] = [];
    const skipped: Several["skipped"][number][] = [];
    for (let cursor: string | undefined; ; ) {
      const slice = await askJson<Several & { cursor?: string }>(connection, {
        path,
        body: { ...which, until, cursor },
        signal,
        // Of one moment, nothing is done twice.
        isRepeatable: !!(which.dryRun || until),
      });
      count += slice.count;
      ids.push(...slice.ids);
      skipped.push(...slice.skipped);
      ({ until, cursor } = slice);
      if (!cursor) return { count, ids, skipped, until };
    }
  };
  return {
    cancelAll: (which) => several("/v1/tasks/cancel", which),
    redriveAll: (which) => several("/v1/dead-letters/redrive", which),
    tasks: (filter = {}) => tasksAt("/v1/tasks", filter),
    deadLetters: (filter = {}) => tasksAt("/v1/dead-letters", filter),
    audit: ({ signal, pageSize: limit, since, until, ...filter } = {}) =>
      listOf(async (cursor) => {
        const query = { ...filter, since: timeOf(since), until: timeOf(until), limit, cursor };
        const { entries: items, ...next } = await read<{ entries: AuditEntry[] }>(
          "/v1/audit",
          { signal },
          query,
        );
        return { items, ...next };
      }),
    agents: async (options) => (await read<{ agents: AgentStatus[] }>("/v1/agents", options)).agents,
    pause: (agent, { why, signal } = {}) => change(agent, "pause", why === undefined ? {} : { why }, signal),
    resume: (agent, { signal } = {}) => change(agent, "resume", {}, signal),
    // Asked once: what is wrong now is the answer.
    health: ({ signal } = {}) =>
      askJson({ ...connection, patience: 0 }, { path: "/health", signal, isRepeatable: true }),
  };
}

export function timeOf(time: Date | string | undefined): string | undefined {
  return typeof time === "object" ? time.toISOString() : time;
}
