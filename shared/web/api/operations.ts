import type * as z from "zod";
import { cancel, redrive, resolve, signal } from "../../audit/operations.ts";
import type { Task } from "../../task/document.ts";
import { approvalSignal } from "../../task/signals.ts";
import type { Json } from "../../values/json.ts";
import type { Request } from "../context.ts";
import type { bodies } from "./schemas.ts";

/** What a person does to a task: the task, and what the body of the request says. */
interface Operation<Body extends keyof typeof bodies> {
  readonly task: Task;
  readonly body: z.infer<(typeof bodies)[Body]>;
}

export async function cancelTask(c: Request, { task }: Operation<"cancel">): Promise<Response> {
  return operated(c, await cancel(c.var.deps, task.id));
}

export async function redriveTask(c: Request, { task, body }: Operation<"redrive">): Promise<Response> {
  const how = "from" in body ? { from: body.from } : { fromScratch: body.fromScratch ?? false };
  return operated(c, await redrive(c.var.deps, task.id, how));
}

export async function resolveTask(c: Request, { task, body }: Operation<"resolve">): Promise<Response> {
  const { effect, ...resolution } = body;
  const only = effect === undefined ? {} : { effect };
  return operated(c, await resolve(c.var.deps, task.id, resolution as never, only));
}

export async function signalTask(c: Request, { task, body }: Operation<"signal">): Promise<Response> {
  const { name, value = null, early = false } = body;
  return operated(c, await signal(c.var.deps, task.id, name, value as Json, { ifAsked: !early }));
}

export async function approveTask(
  c: Request,
  { task, body, params }: Operation<"approval"> & { readonly params: { readonly name: string } },
): Promise<Response> {
  const { approved, note, early = false } = body;
  const said = { approved, by: c.var.token.owner, ...(note !== undefined && { note }) };
  const name = approvalSignal(params.name);
  return operated(c, await signal(c.var.deps, task.id, name, said, { ifAsked: !early }));
}

const operated = (c: Request, { id, state }: Task): Response => c.json({ id, state });
