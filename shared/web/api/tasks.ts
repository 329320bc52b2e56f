import type * as z from "zod";
import { submit } from "../../dispatch/submit.ts";
import { isPawlError, PawlError } from "../../errors/errors.ts";
import type { TaskFilter, TaskPage, Unread } from "../../ports/store.ts";
import type { Task } from "../../task/document.ts";
import { canonicalJson, type Json, type JsonObject, sha256 } from "../../values/json.ts";
import { mayUse, seesAll } from "../authorize.ts";
import type { Env, Request } from "../context.ts";
import { problem } from "../problem.ts";
import { costOfLook } from "../rate-limit.ts";
import type { Token } from "../tokens.ts";
import type { ApiAgent } from "./route.ts";
import type { bodies, queries } from "./schemas.ts";
import { isFound } from "./search.ts";

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
  await agent.checkInput(body.input as JsonObject);
  const key = idempotencyKey(c.req.header("idempotency-key"), body.id);
  const traceparent = c.req.header("traceparent");
  const { owner } = token;
  const id = key === undefined ? body.id : `k-${sha256(`${owner}\n${key}`).slice(0, 40)}`;
  // The owner is part of the hash: the same body of another owner is another request.
  const requestHash = sha256(canonicalJson({ owner, body: body as unknown as Json }));
  const submitted = await submit(deps, {
    agent: agent.name,
    lanes: agent.lanes,
    input: body.input as JsonObject,
    byKey: key !== undefined,
    ...(id !== undefined && { id }),
    ...(body.msgId !== undefined && { msgId: `own:${owner}:${body.msgId}` }),
    ...(body.orderingKey !== undefined && { orderingKey: body.orderingKey }),
    ...(body.at !== undefined && { at: Date.parse(body.at) }),
    ...(traceparent !== undefined && { traceparent }),
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

/** Of a token that sees only its owner's tasks, another owner has none. */
export function filterOf(token: Token, { agent, state, owner }: ListQuery): TaskFilter | undefined {
  if (agent !== undefined && !mayUse(token, agent)) return undefined;
  if (!seesAll(token) && owner !== undefined && owner !== token.owner) return undefined;
  const whose = seesAll(token) ? owner : token.owner;
  return {
    ...(agent !== undefined ? { agent } : token.agents && { agents: token.agents }),
    ...(whose !== undefined && { owner: whose }),
    ...(state && { state: state as Task["state"] }),
  };
}

/** Tasks that are read for one page where most of them are not meant. */
const MOST_READ = 2_000;

/**
 * A page of what the token may see, and of nothing else: the cursor names the last of these. Where only some of them are
 * meant, so many are read at the most, and the page may be short, or empty, with a cursor to go on from.
 */
export async function listTasks(
  { deps, token, charge }: Env["Variables"],
  query: ListQuery,
  isMeant: (task: Task) => boolean = isFound(query),
): Promise<TaskPage> {
  const { cursor: from, limit = DEFAULT_LIMIT } = query;
  const filter = filterOf(token, query);
  if (!filter) return { tasks: [] };
  const tasks: Task[] = [];
  const unreadable: Unread[] = [];
  let cursor = from;
  for (let read = 0; ; ) {
    let page = await deps.store.list(filter, limit, cursor);
    const last = page.tasks.filter(isMeant)[limit - tasks.length];
    // More than there is room for. A cursor names the end of what was asked for, so less is asked for.
    if (last) page = await deps.store.list(filter, page.tasks.indexOf(last), cursor);
    charge(costOfLook(page.looked ?? page.tasks.length), "owed");
    tasks.push(...page.tasks.filter(isMeant));
    unreadable.push(...(page.unreadable ?? []));
    ({ cursor } = page);
    read += Math.max(1, page.tasks.length);
    const isAll = cursor === undefined || page.tasks.length === tasks.length;
    if (isAll || tasks.length >= limit || read >= MOST_READ) break;
  }
  return {
    tasks,
    ...(cursor !== undefined && { cursor }),
    ...(unreadable.length > 0 && { unreadable }),
  };
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
