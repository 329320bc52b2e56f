import type { Hono } from "hono";
import type * as z from "zod";
import { cancel, redrive, resolve, signal } from "../dispatch/operate.ts";
import type { Deps } from "../ports/deps.ts";
import type { Task } from "../task/document.ts";
import { approvalSignal } from "../task/signals.ts";
import type { Json } from "../values/json.ts";
import { type Env, need, taskFor } from "./authenticate.ts";
import { json, read } from "./read.ts";
import { approvalName, bodies } from "./schemas.ts";

/** What a person does to a task. */
export function addOperations(app: Hono<Env>): void {
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
  operate("/v1/tasks/:id/resolve", bodies.resolve, (deps, id, { effect, ...body }) =>
    resolve(deps, id, body as never, effect === undefined ? {} : { effect }),
  );
  operate("/v1/tasks/:id/signal", bodies.signal, (deps, id, body) =>
    signal(deps, id, body.name, (body.value ?? null) as Json),
  );
  operate("/v1/tasks/:id/approvals/:name", bodies.approval, (deps, id, body, by, path) => {
    const name = read(approvalName, path, "The approval's name");
    const { approved, note } = body;
    return signal(deps, id, approvalSignal(name), { approved, by, ...(note !== undefined && { note }) });
  });
}
