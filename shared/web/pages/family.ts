import { html } from "hono/html";
import { type Cost, NO_COST, plus } from "../../journal/cost.ts";
import { type Newest, newestOf } from "../../journal/newest.ts";
import type { Deps } from "../../ports/deps.ts";
import type { Task } from "../../task/document.ts";
import { dollars } from "../../values/dollars.ts";
import { maySee } from "../authorize.ts";
import type { Env } from "../context.ts";
import { badge, type Html, heads, number, table, taskPath, time } from "../frame/text.ts";

/** However large a family is, so many of its documents and journals are read for a page. */
const MOST_TASKS = 60;
const MOST_JOURNALS = 15;

/** The tasks that a task submitted, and what all of them together cost, those they submitted among them. */
export interface Family {
  readonly children: readonly Task[];
  readonly spent: Cost;
  readonly tasks: number;
  /** All of it was read. */
  readonly isWhole: boolean;
}

/** Children are found in the journal, which has the step that submitted each. */
function childrenIn({ entries }: Newest): string[] {
  return entries.flatMap((entry) => {
    if (entry.kind !== "step" || !entry.key.startsWith("submit ")) return [];
    return typeof entry.value === "string" && /^c-[0-9a-f]{40}$/.test(entry.value) ? [entry.value] : [];
  });
}

export async function familyOf(
  { deps, token }: Pick<Env["Variables"], "deps" | "token">,
  task: Task,
  journal: Newest | undefined,
): Promise<Family | undefined> {
  const first = journal ? childrenIn(journal) : [];
  if (!journal || first.length === 0) return undefined;
  let isWhole = journal.before === 0;
  let spent = NO_COST;
  let journals = 0;
  const found: Task[] = [];
  const parents: { readonly task: Task; readonly ids: readonly string[] }[] = [{ task, ids: first }];
  for (let parent = parents.shift(); parent; parent = parents.shift()) {
    const { task: of, ids } = parent;
    // The newest of them: who has many looks at those first.
    const wanted = ids.toReversed().slice(0, MOST_TASKS - found.length);
    const there = await readAll(deps, wanted);
    const theirs = there.filter((one) => one.parent === of.id && maySee(token, one));
    if (theirs.length < ids.length) isWhole = false;
    for (const child of theirs) {
      found.push(child);
      const isAsked = child.journaled > 0 && journals < MOST_JOURNALS;
      const own = isAsked ? await newestOf(deps.store, child).catch(() => undefined) : undefined;
      if (isAsked) journals++;
      else if (child.journaled > 0) isWhole = false;
      spent = plus(spent, own?.head.spent ?? child.spent);
      const next = own ? childrenIn(own) : [];
      if (own && own.before > 0) isWhole = false;
      if (next.length > 0) parents.push({ task: child, ids: next });
    }
  }
  const children = found.filter(({ parent }) => parent === task.id);
  return { children, spent, tasks: found.length, isWhole };
}

async function readAll({ store }: Pick<Deps, "store">, ids: readonly string[]): Promise<Task[]> {
  const tasks: Task[] = [];
  for (let from = 0; from < ids.length; ) {
    const page = await store.getMany(ids.slice(from));
    if (page.length === 0) break;
    from += page.length;
    for (const one of page) if (one && "task" in one && one.altered === undefined) tasks.push(one.task);
  }
  return tasks;
}

export function familyTable({ children, tasks, isWhole }: Family): Html {
  const rows = children.map(
    (
      child,
    ) => html`<tr id="child-${child.id}"><th scope="row"><a href="${taskPath(child.id)}"><code>${child.id}</code></a></th>
<td>${child.agent}</td><td>${badge(child.state)}</td><td>${time(child.updatedAt)}</td><td class="end">${dollars(child.spent.usd)}</td></tr>`,
  );
  const others = tasks - children.length;
  return html`${table("children", "Children", heads("Task|Agent|State|Changed|Own dollars>"), rows)}
${others > 0 && html`<p class="note">These submitted ${number(others)} more.</p>`}
${!isWhole && html`<p class="note">There may be more: the newest are shown, and those that you may see.</p>`}`;
}
