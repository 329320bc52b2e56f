import type { Hono } from "hono";
import * as z from "zod";
import { submit } from "../dispatch/submit.ts";
import { isPawlError, PawlError } from "../errors/errors.ts";
import type { TaskPage } from "../ports/store.ts";
import type { Task } from "../task/document.ts";
import { canonicalJson, type Json, type JsonObject, sha256 } from "../values/json.ts";
import { type Env, mayUse, need, taskFor, type WebAgent } from "./authenticate.ts";
import { problem } from "./problem.ts";
import { json, read } from "./read.ts";
import { bodies, queries } from "./schemas.ts";

const DEFAULT_LIMIT = 50;

/** Submitting tasks, and looking at them. */
export function addTasks(app: Hono<Env>, agents: readonly WebAgent[]): void {
  const checks = new Map(agents.map((agent) => [agent.name, inputCheck(agent)]));

  app.post("/v1/tasks", async (c) => {
    const { deps, token } = c.var;
    need(token, "submit");
    const body = read(bodies.submit, await json(c.req.raw), "The body");
    const lanes = agents.find((one) => one.name === body.agent)?.lanes;
    if (lanes === undefined || !mayUse(token, body.agent))
      throw new PawlError("agent_unknown", `There is no agent ${JSON.stringify(body.agent)} for this token`);
    read(checks.get(body.agent) ?? z.unknown(), body.input, "The input");
    const key = idempotencyKey(c.req.header("idempotency-key"), body.id);
    const { owner } = token;
    const id = key === undefined ? body.id : `k-${(await sha256(`${owner}\n${key}`)).slice(0, 40)}`;
    // The owner is part of it: the same words of another are another request.
    const requestHash = await sha256(canonicalJson({ owner, body: body as unknown as Json }));
    const submitted = await submit(deps, {
      agent: body.agent,
      lanes,
      input: body.input as JsonObject,
      byKey: key !== undefined,
      ...(id !== undefined && { id }),
      ...(body.msgId !== undefined && { msgId: `own:${owner}:${body.msgId}` }),
      ...(body.orderingKey !== undefined && { orderingKey: body.orderingKey }),
      ...(body.at !== undefined && { at: Date.parse(body.at) }),
      meta: { owner, requestHash, ...(body.labels && { labels: body.labels }) },
    }).catch((error: unknown) => {
      if (!isPawlError(error, "id_conflict")) throw error;
      // Whose work it is, and of which agent, is not said: it may be another owner's.
      if (key === undefined) return problem("id_conflict", "The id belongs to other work. Use another one");
      return problem("idempotency_key_reused", "The key was used for another request. Use another one");
    });
    if (submitted instanceof Response) return submitted;
    c.header("location", `/v1/tasks/${submitted.id}`);
    return c.json(submitted, submitted.kind === "accepted" ? 201 : 200);
  });

  app.get("/v1/tasks", async (c) => {
    need(c.var.token, "read");
    return c.json(summaries(await list(c.var, read(queries.list, c.req.query(), "The query"))));
  });

  app.get("/v1/dead-letters", async (c) => {
    need(c.var.token, "read");
    const query = read(queries.deadLetters, c.req.query(), "The query");
    return c.json(summaries(await list(c.var, { ...query, state: "failed" })));
  });

  app.get("/v1/tasks/:id", async (c) => {
    need(c.var.token, "read");
    return c.json(await taskFor(c.var, c.req.param("id")));
  });
}

/** A page of what the token may see, and of nothing else: the cursor names the last of these. */
export async function list(
  { deps, token }: Env["Variables"],
  query: z.infer<typeof queries.list>,
): Promise<TaskPage> {
  const { agent, state, cursor, limit = DEFAULT_LIMIT } = query;
  if (agent !== undefined && !mayUse(token, agent)) return { tasks: [] };
  const isOperator = token.scopes.includes("operate");
  return deps.store.list(
    {
      ...(agent !== undefined ? { agent } : token.agents && { agents: token.agents }),
      ...(!isOperator && { owner: token.owner }),
      ...(state && { state: state as Task["state"] }),
    },
    limit,
    cursor,
  );
}

/** Without what can't be read: nobody knows whose it is. */
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

/** As far as JSON Schema can say it; the agent's own schema has the last word when the task runs. */
function inputCheck({ inputSchema }: WebAgent): z.ZodType | undefined {
  if (!inputSchema) return undefined;
  try {
    return z.fromJSONSchema(inputSchema as Parameters<typeof z.fromJSONSchema>[0]);
  } catch {
    return undefined;
  }
}
