import * as z from "zod";
import { submit } from "../../dispatch/submit.ts";
import { isPawlError, PawlError } from "../../errors/errors.ts";
import type { TaskPage } from "../../ports/store.ts";
import type { Task } from "../../task/document.ts";
import { canonicalJson, type Json, type JsonObject, sha256 } from "../../values/json.ts";
import { mayUse, seesAll } from "../authorize.ts";
import type { Env, Request, WebAgent } from "../context.ts";
import { problem } from "../problem.ts";
import { validate } from "../validate.ts";
import type { ApiAgent } from "./route.ts";
import type { bodies, queries } from "./schemas.ts";

const DEFAULT_LIMIT = 50;

interface Submit {
  readonly agents: readonly ApiAgent[];
  readonly body: z.infer<typeof bodies.submit>;
}

export async function submitTask(c: Request, { agents, body }: Submit): Promise<Response> {
  const { deps, token } = c.var;
  const agent = agents.find(({ name }) => name === body.agent);
  if (!agent || !mayUse(token, agent.name))
    throw new PawlError("agent_unknown", `There is no agent ${JSON.stringify(body.agent)} for this token`);
  validate(agent.input, body.input, "The input");
  const key = idempotencyKey(c.req.header("idempotency-key"), body.id);
  const { owner } = token;
  const id = key === undefined ? body.id : `k-${(await sha256(`${owner}\n${key}`)).slice(0, 40)}`;
  // The owner is part of the hash: the same body of another owner is another request.
  const requestHash = await sha256(canonicalJson({ owner, body: body as unknown as Json }));
  const submitted = await submit(deps, {
    agent: agent.name,
    lanes: agent.lanes,
    input: body.input as JsonObject,
    byKey: key !== undefined,
    ...(id !== undefined && { id }),
    ...(body.msgId !== undefined && { msgId: `own:${owner}:${body.msgId}` }),
    ...(body.orderingKey !== undefined && { orderingKey: body.orderingKey }),
    ...(body.at !== undefined && { at: Date.parse(body.at) }),
    meta: { owner, requestHash, ...(body.labels && { labels: body.labels }) },
  }).catch((error: unknown) => {
    if (!isPawlError(error, "id_conflict")) throw error;
    // The answer does not say whose task has the id, nor of which agent: it may be another owner's.
    if (key === undefined) return problem("id_conflict", "The id belongs to other work. Use another one");
    return problem("idempotency_key_reused", "The key was used for another request. Use another one");
  });
  if (submitted instanceof Response) return submitted;
  c.header("location", `/v1/tasks/${submitted.id}`);
  return c.json(submitted, submitted.kind === "accepted" ? 201 : 200);
}

type ListQuery = z.infer<typeof queries.list>;

export async function taskList(c: Request, query: ListQuery): Promise<Response> {
  return c.json(summaries(await listTasks(c.var, query)));
}

export function oneTask(c: Request, { task }: { readonly task: Task }): Response {
  return c.json(task);
}

/** A page of what the token may see, and of nothing else: the cursor names the last of these. */
export async function listTasks({ deps, token }: Env["Variables"], query: ListQuery): Promise<TaskPage> {
  const { agent, state, cursor, limit = DEFAULT_LIMIT } = query;
  if (agent !== undefined && !mayUse(token, agent)) return { tasks: [] };
  return deps.store.list(
    {
      ...(agent !== undefined ? { agent } : token.agents && { agents: token.agents }),
      ...(!seesAll(token) && { owner: token.owner }),
      ...(state && { state: state as Task["state"] }),
    },
    limit,
    cursor,
  );
}

/** A page without the documents that can't be read: nobody knows whose they are. */
function summaries({ tasks, cursor }: TaskPage): JsonObject {
  return { tasks: tasks.map(summary), ...(cursor !== undefined && { cursor }) };
}

/** A task in a list: without its input, result, journal and history. */
function summary(task: Task): JsonObject {
  const { id, agent, state, attempts, createdAt, updatedAt, spent, meta } = task;
  const error = task.state === "failed" && { error: { code: task.error.code, message: task.error.message } };
  const labels = meta?.labels && { labels: { ...meta.labels } };
  return { id, agent, state, attempts, createdAt, updatedAt, usd: spent.usd, ...labels, ...error };
}

function idempotencyKey(key: string | undefined, id: string | undefined): string | undefined {
  if (key !== undefined && id !== undefined)
    throw new PawlError(
      "input_invalid",
      "An id and an Idempotency-Key are both given. Choose one: each names the work",
    );
  if (key !== undefined && (key.length === 0 || key.length > 255))
    throw new PawlError(
      "input_invalid",
      `The Idempotency-Key has ${key.length} characters; it should have 1 to 255`,
    );
  return key;
}

/** What an input is checked by, as far as JSON Schema can say it; the agent's own schema has the last word when the task runs. */
export function inputCheck({ inputSchema }: WebAgent): z.ZodType {
  if (!inputSchema) return z.unknown();
  try {
    return z.fromJSONSchema(inputSchema as Parameters<typeof z.fromJSONSchema>[0]);
  } catch {
    return z.unknown();
  }
}
