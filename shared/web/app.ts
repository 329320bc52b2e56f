import { Hono } from "hono";
import { bodyLimit } from "hono/body-limit";
import type * as z from "zod";
import type { Deps } from "../journey/deps.ts";
import { queueOf } from "../journey/dispatch.ts";
import { cancel, redrive, resolve, signal } from "../journey/operate.ts";
import { submit } from "../journey/submit.ts";
import type { Log } from "../ports/log.ts";
import type { Task } from "../task/document.ts";
import { isPawlError, messageOf, PawlError } from "../task/errors.ts";
import { canonicalJson, type Json, type JsonObject, parseJson, sha256 } from "../task/json.ts";
import { isTaskId } from "../task/names.ts";
import { approvalSignal } from "../task/signals.ts";
import { openApi } from "./openapi.ts";
import { failed, problem } from "./problem.ts";
import { bodies, queries } from "./schemas.ts";
import { findToken, isTokenLike, type Scope, type Token } from "./tokens.ts";

export interface AppOptions {
  /** The agents of this project, by name. */
  readonly agents: readonly { readonly name: string; readonly lanes: number }[];
  /** Origins that browsers may call from. None by default. */
  readonly corsOrigin?: string;
}

/** What each request is given. */
export interface Bindings {
  readonly log: Log;
  open(): Promise<Deps>;
}

type Env = { Bindings: Bindings; Variables: { deps: Deps; token: Token } };

/** Everything but the input, which has its own limit. */
const BODY_ROOM = 64 * 1024;
const DEFAULT_LIMIT = 50;

/** The HTTP API. Nothing but /health is answered without a token. */
export function createApp({ agents, corsOrigin }: AppOptions): Hono<Env> {
  const app = new Hono<Env>();
  app.onError((error, c) => failed(error, c.env.log));
  app.notFound((c) => problem(404, "not_found", `There is no ${c.req.path} here`));

  app.use(async (c, next) => {
    if (corsOrigin && c.req.header("origin") === corsOrigin) {
      c.header("access-control-allow-origin", corsOrigin);
      c.header("access-control-allow-headers", "authorization, content-type, idempotency-key");
      c.header("access-control-allow-methods", "GET, POST");
      if (c.req.method === "OPTIONS") return c.body(null, 204);
    }
    await next();
  });

  app.get("/health", async (c) => {
    try {
      const deps = await c.env.open();
      // A document that is not there is an answer; a store that is away is an error.
      await deps.store.get("health");
      return c.json({ ok: true });
    } catch (error) {
      // Where they are is not for everyone.
      c.env.log("error", "health.failed", { reason: messageOf(error) });
      return problem(503, "unhealthy", "NATS or the store does not answer. See the function's log");
    }
  });

  app.use("/v1/*", async (c, next) => {
    const text = /^Bearer (\S+)$/i.exec(c.req.header("authorization") ?? "")?.[1];
    const how = "Send Authorization: Bearer <token>. Make one: pawl token create";
    const refused = () => problem(401, "unauthorised", how, { "www-authenticate": "Bearer" });
    // What can't be a token is not worth a connection.
    if (text === undefined || !isTokenLike(text)) return refused();
    const deps = await c.env.open();
    c.set("deps", deps);
    const token = await findToken(deps.store, text);
    if (!token) return refused();
    c.set("token", token);
    const limit = bodyLimit({
      maxSize: deps.settings.inputLimit + BODY_ROOM,
      onError: () =>
        problem(413, "input_too_large", `The body is over ${deps.settings.inputLimit + BODY_ROOM} bytes`),
    });
    return limit(c, next);
  });

  app.get("/v1/openapi.json", (c) => c.json(openApi()));

  app.post("/v1/tasks", async (c) => {
    const { deps, token } = c.var;
    need(token, "submit");
    const body = read(bodies.submit, await json(c.req.raw), "The body");
    const lanes = agents.find((one) => one.name === body.agent)?.lanes;
    if (lanes === undefined || !mayUse(token, body.agent))
      throw new PawlError("agent_unknown", `There is no agent ${JSON.stringify(body.agent)} for this token`);
    const key = c.req.header("idempotency-key");
    if (key !== undefined && body.id !== undefined)
      throw new PawlError(
        "input_invalid",
        "An id and an Idempotency-Key are both given. Choose one: each names the work",
      );
    if (key !== undefined && (key.length === 0 || key.length > 255))
      throw new PawlError(
        "input_invalid",
        `The Idempotency-Key has ${key.length} characters; it should have 1 to 255`,
      );
    const { owner } = token;
    const id = key === undefined ? body.id : `k-${(await sha256(`${owner}\n${key}`)).slice(0, 40)}`;
    // The owner is part of it: the same words of another are another request.
    const requestHash = await sha256(canonicalJson({ owner, body: body as unknown as Json }));
    const submitted = await submit(deps, {
      agent: body.agent,
      lanes,
      input: body.input as JsonObject,
      ...(id !== undefined && { id }),
      ...(body.orderingKey !== undefined && { orderingKey: body.orderingKey }),
      ...(body.at !== undefined && { at: Date.parse(body.at) }),
      meta: { owner, requestHash, ...(body.labels && { labels: body.labels }) },
    }).catch((error: unknown) => {
      if (!isPawlError(error, "id_conflict")) throw error;
      // Whose work it is, and of which agent, is not said: it may be another owner's.
      if (key === undefined)
        return problem(409, "id_conflict", "The id belongs to other work. Use another one");
      return problem(422, "idempotency_key_reused", "The key was used for another request. Use another one");
    });
    if (submitted instanceof Response) return submitted;
    c.header("location", `/v1/tasks/${submitted.id}`);
    return c.json(submitted, submitted.kind === "accepted" ? 201 : 200);
  });

  /** A page of what the token may see, and of nothing else: the cursor names the last of these. */
  const list = async ({ deps, token }: Env["Variables"], query: z.infer<typeof queries.list>) => {
    const { agent, state, cursor, limit = DEFAULT_LIMIT } = query;
    if (agent !== undefined && !mayUse(token, agent)) return { tasks: [] };
    const isOperator = token.scopes.includes("operate");
    const page = await deps.store.list(
      {
        ...(agent !== undefined ? { agent } : token.agents && { agents: token.agents }),
        ...(!isOperator && { owner: token.owner }),
        ...(state && { state: state as Task["state"] }),
      },
      limit,
      cursor,
    );
    return { ...page, tasks: page.tasks.map(summary) };
  };

  app.get("/v1/tasks", async (c) => {
    need(c.var.token, "read");
    return c.json(await list(c.var, read(queries.list, c.req.query(), "The query")));
  });

  app.get("/v1/dead-letters", async (c) => {
    need(c.var.token, "read");
    const query = read(queries.deadLetters, c.req.query(), "The query");
    return c.json(await list(c.var, { ...query, state: "failed" }));
  });

  app.get("/v1/tasks/:id", async (c) => {
    need(c.var.token, "read");
    return c.json(await taskFor(c.var, c.req.param("id")));
  });

  app.get("/v1/agents", async (c) => {
    const { deps, token } = c.var;
    need(token, "read");
    const mine = agents.filter(({ name }) => mayUse(token, name));
    const answers = mine.map(async ({ name, lanes }) => {
      const queues = Array.from({ length: lanes }, (_, lane) => queueOf({ agent: name, lane }, deps));
      const states = await Promise.all(queues.map((queue) => deps.bus.state(queue).catch(noQueue)));
      const sum = (field: "pending" | "inFlight") =>
        states.reduce((all, one) => all + (one?.[field] ?? 0), 0);
      return { name, lanes, pending: sum("pending"), inFlight: sum("inFlight") };
    });
    return c.json({ agents: await Promise.all(answers) });
  });

  /** Something that a person does to a task. */
  const operate = <T>(
    path: string,
    schema: z.ZodType<T>,
    work: (deps: Deps, id: string, body: T, by: string, name: string) => Promise<Task>,
  ) =>
    app.post(path, async (c) => {
      need(c.var.token, "operate");
      const { id } = await taskFor(c.var, c.req.param("id") ?? "");
      const body = read(schema, await json(c.req.raw), "The body");
      const task = await work(c.var.deps, id, body, c.var.token.owner, c.req.param("name") ?? "");
      return c.json({ id, state: task.state });
    });
  operate("/v1/tasks/:id/cancel", bodies.cancel, (deps, id) => cancel(deps, id));
  operate("/v1/tasks/:id/redrive", bodies.redrive, (deps, id, body) =>
    redrive(deps, id, body.fromScratch ?? false),
  );
  operate("/v1/tasks/:id/resolve", bodies.resolve, (deps, id, body) => resolve(deps, id, body as never));
  operate("/v1/tasks/:id/signal", bodies.signal, (deps, id, body) =>
    signal(deps, id, body.name, (body.value ?? null) as Json),
  );
  operate("/v1/tasks/:id/approvals/:name", bodies.approval, (deps, id, body, by, name) => {
    const { approved, note } = body;
    return signal(deps, id, approvalSignal(name), { approved, by, ...(note !== undefined && { note }) });
  });
  return app;
}

/** An agent that never ran has none. */
function noQueue(error: unknown): undefined {
  if (!isPawlError(error, "bus_refused")) throw error;
}

/** A task in a list: without its input, result, journal and history. */
function summary(task: Task): JsonObject {
  const { id, agent, state, attempts, createdAt, updatedAt, spent, meta } = task;
  const error = task.state === "failed" && { error: { code: task.error.code, message: task.error.message } };
  const labels = meta?.labels && { labels: { ...meta.labels } };
  return { id, agent, state, attempts, createdAt, updatedAt, usd: spent.usd, ...labels, ...error };
}

function need({ scopes }: Token, scope: Scope): void {
  if (!scopes.includes(scope)) throw new PawlError("scope_missing", `The token lacks the scope ${scope}`);
}

function mayUse({ agents }: Token, agent: string): boolean {
  return !agents || agents.includes(agent);
}

/** One's own, and an operator's all, of the agents that the token is for. */
function maySee(token: Token, task: Task): boolean {
  if (!mayUse(token, task.agent)) return false;
  return token.scopes.includes("operate") || task.meta?.owner === token.owner;
}

/** Another owner's task is as good as none. */
async function taskFor({ deps, token }: Env["Variables"], id: string): Promise<Task> {
  const task = isTaskId(id) ? (await deps.store.get(id))?.task : undefined;
  if (task && maySee(token, task)) return task;
  throw new PawlError("task_unknown", `There is no task ${JSON.stringify(id.slice(0, 128))}`);
}

async function json(request: Request): Promise<unknown> {
  const text = await request.text();
  return text === "" ? {} : parseJson(text, "The body");
}

function read<T>(schema: z.ZodType<T>, value: unknown, what: string): T {
  const checked = schema.safeParse(value);
  if (checked.success) return checked.data;
  const issues = checked.error.issues.slice(0, 5).map(({ path, message }) => {
    return path.length > 0 ? `${path.map(String).join(".")}: ${message}` : message;
  });
  throw new PawlError("input_invalid", `${what} is not as it should be. ${issues.join("; ")}`);
}
