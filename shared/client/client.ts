import type { StandardSchemaV1 } from "@standard-schema/spec";
import type { Agent, Json, JsonObject } from "../agent.ts";
import { type ClientOptions, type Connection, connect, invalid } from "./connection.ts";
import { type Lists, listsOf, timeOf } from "./lists.ts";
import { askJson, type CallOptions } from "./request.ts";
import type { State } from "./task.ts";
import { type TaskHandle, taskHandle } from "./tasks.ts";

/** An agent by its form: those of another copy of Pawl, which callers may have installed, are as good. */
interface AgentLike {
  readonly kind: "pawl.agent";
  readonly input?: StandardSchemaV1;
  readonly run: (context: never) => unknown;
}

/** The names of those that are agents, of an object or a module of them. */
export type AgentName<Agents> = {
  [Name in keyof Agents]: Agents[Name] extends AgentLike ? Name : never;
}[keyof Agents] &
  string;

/** What the agent of this name is given: any JSON object where it has no schema. */
export type InputFor<Agents, Name extends keyof Agents> = Agents[Name] extends {
  readonly input?: infer Schema extends StandardSchemaV1;
}
  ? unknown extends StandardSchemaV1.InferInput<Schema>
    ? JsonObject
    : StandardSchemaV1.InferInput<Schema>
  : JsonObject;

/** What the agent of this name ends with, as it is stored: nothing is null. */
export type ResultFor<Agents, Name extends keyof Agents> = Agents[Name] extends {
  readonly run: (context: never) => infer Returned;
}
  ? unknown extends Awaited<Returned>
    ? Json
    : Stored<Awaited<Returned>>
  : Json;

type Stored<Result> = Result extends void ? null : Result;

/** What a submit says beside the agent and its input. */
export interface SubmitOptions extends CallOptions {
  /**
   * Names the request: again with the same agent, input and options it is the same task, with others `idempotency_key_reused`.
   * 1 to 255 visible ASCII characters. Made up for each call when left out, so that its own tries are one task.
   */
  readonly key?: string;
  /** The task's id, instead of a key. */
  readonly id?: string;
  /** Not before then. Of a date or a time with its offset: with a key, the same each time. */
  readonly at?: Date | string;
  /** Tasks of one key share a lane, and stay in order. */
  readonly orderingKey?: string;
  /** Which operation this is, as the message's Msg-Id: docs/api.md. */
  readonly msgId?: string;
  /** For lists: { team: "docs" }. */
  readonly labels?: Readonly<Record<string, string>>;
}

/** A task that was submitted. */
export interface SubmittedTask<Result = Json> extends TaskHandle<Result> {
  /** "already": the same had been submitted before, and this changed nothing. */
  readonly kind: "accepted" | "already";
  /** The state that it was in then. */
  readonly state: State;
}

/** Pawl's API, with the types of its agents. */
export interface Client<Agents = Record<string, Agent>> extends Lists {
  /** Submits a task: one, however often it has to be sent. Resolves when it is stored, and will be run. */
  submit<Name extends AgentName<Agents>>(
    agent: Name,
    input: InputFor<Agents, Name>,
    options?: SubmitOptions,
  ): Promise<SubmittedTask<ResultFor<Agents, Name>>>;
  /** A task by its id, which asks nobody yet. `task<"digest">(id)` has the types of that agent. */
  task<Name extends AgentName<Agents> = never>(
    id: string,
  ): TaskHandle<[Name] extends [never] ? Json : ResultFor<Agents, Name>>;
}

/**
 * A client of Pawl's API, for browsers, servers and Workers. Its type parameter has the types of inputs and results, and
 * nothing of the agents' code: `createClient<typeof agents>({ url, token })`, with an `import type` of them.
 */
export function createClient<Agents = Record<string, Agent>>(options: ClientOptions): Client<Agents> {
  return clientOf(connect(options));
}

export function clientOf<Agents = Record<string, Agent>>(connection: Connection): Client<Agents> {
  return {
    ...listsOf(connection),
    submit: (agent, input, options) => submit(connection, agent, input, options),
    task: (id) => taskHandle(connection, id),
  };
}

async function submit<Result>(
  connection: Connection,
  agent: string,
  input: unknown,
  { key, at, signal, ...options }: SubmitOptions = {},
): Promise<SubmittedTask<Result>> {
  const named = key ?? (options.id === undefined ? madeUp() : undefined);
  if (named !== undefined && !/^(?! )[ -~]{1,255}(?<! )$/.test(named))
    throw invalid(
      `key is ${JSON.stringify(named).slice(0, 300)}; it should be 1 to 255 visible ASCII characters`,
    );
  const { id, kind, state } = await askJson<SubmittedTask>(connection, {
    path: "/v1/tasks",
    body: { agent, input, at: timeOf(at), ...options },
    headers: named === undefined ? {} : { "idempotency-key": named },
    signal,
    // By its key or its id it is one task, however often it is sent.
    isRepeatable: true,
  });
  return { ...taskHandle<Result>(connection, id), kind, state };
}

/** 128 random bits; a page over plain HTTP has no `crypto.randomUUID`. */
function madeUp(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
