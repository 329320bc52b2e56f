import { joined } from "../../journal/logs.ts";
import { newestOf } from "../../journal/newest.ts";
import type { Task } from "../../task/document.ts";
import type { Request } from "../context.ts";

/** The newest part of a task's journal: what its handler did, what it was asked, what that took and cost. */
export async function taskJournal(c: Request, { task }: { readonly task: Task }): Promise<Response> {
  const newest = await newestOf(c.var.deps.store, task);
  const { entries = [], before = 0 } = newest ?? {};
  return c.json({ before, entries: entries.map((entry, i) => ({ n: before + i + 1, ...entry })) });
}

/** What its handlers logged, as far as it is kept. */
export async function taskLogs(c: Request, { task }: { readonly task: Task }): Promise<Response> {
  const newest = await newestOf(c.var.deps.store, task);
  const { lines = [], count = 0 } = joined(task.logs, newest?.head.logs) ?? {};
  return c.json({ count, lines: lines.map(({ level = "info", ...line }) => ({ ...line, level })) });
}
