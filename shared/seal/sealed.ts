import { Altered } from "../errors/errors.ts";
import type { Head } from "../journal/entries.ts";
import type { Log } from "../ports/log.ts";
import type { Sealer } from "../ports/sealer.ts";
import type { Found, Stored, StoredHead, TaskStore, WriteResult } from "../ports/store.ts";
import type { Seal, Task } from "../task/document.ts";
import { sweepAt } from "../task/due.ts";
import { resealed } from "../values/document-text.ts";
import { headText, keyIdOf, sealIn, taskText } from "./seal.ts";

/**
 * The same store, with a seal on every document and journal that is written through it. One that is read and was
 * changed by another hand is thrown as `Altered`: nobody acts on it, and nobody writes over it, which would seal it.
 */
export function sealed(store: TaskStore, sealer: Sealer, log: Log): TaskStore {
  const write = async <T extends Task | Head>(
    content: T,
    text: (content: T, before: string) => string,
    put: (content: T) => Promise<WriteResult>,
  ): Promise<WriteResult> => {
    const { stamp } = content;
    const before = content.seal?.own ?? "";
    const seal: Seal = { own: sealer.seal(text(content, before)), before, stamp };
    const result = await put(resealed(content, seal));
    return result.kind === "written" ? { ...result, seal } : result;
  };
  const codeOf = (task: Task) => {
    const { own } = sealIn(task) ?? {};
    return own === undefined || sealer.isOfKnownKey(own) ? "document_altered" : "seal_key_unknown";
  };
  const taskOf = (task: Task, before: string) => taskText(task, task.id, before);
  const read = (found: Stored, id: string): Stored => {
    const why = alteredTask(found.task, id, sealer);
    if (why) throw new Altered(codeOf(found.task), why, found);
    return found;
  };
  const checked = (found: Found): Found => {
    const altered = "task" in found ? alteredTask(found.task, found.key, sealer) : undefined;
    return altered ? { ...found, altered } : found;
  };

  return {
    ...store,
    create: (task) => write(task, taskOf, store.create),
    replace: (task, seen) => write(task, taskOf, (content) => store.replace(content, seen)),
    get: async (id) => {
      const found = await store.get(id);
      return found && read(found, id);
    },
    // A document that was altered is left to the next report: what asks for many goes on with the others. A page of nothing else
    // would say that there is more, and not from where on.
    due: async (agent, state, { after: first, until }, limit) => {
      for (let after = first; ; ) {
        const page = await store.due(agent, state, { after, until }, limit);
        const whys = page.tasks.map(({ task }) => alteredTask(task, task.id, sealer));
        for (const [i, why] of whys.entries())
          if (why) log("error", "document.altered", { task: page.tasks[i]?.task.id ?? "", reason: why });
        const tasks = page.tasks.filter((_, i) => !whys[i]);
        if (tasks.length > 0 || !page.isCut) return { ...page, tasks };
        const last = Math.max(after + 1, ...page.tasks.map(({ task }) => sweepAt(task) ?? 0));
        // Others may be due at the same moment as the last of them.
        after = last - 1 > after ? last - 1 : last;
      }
    },
    changes: async (...asked) => {
      const page = await store.changes(...asked);
      return { ...page, documents: page.documents.map(checked) };
    },
    getMany: async (ids) => (await store.getMany(ids)).map((found) => (found ? checked(found) : undefined)),
    getHead: async (taskId) => {
      const found = await store.getHead(taskId);
      const why = found && alteredHead(found.head, taskId, sealer);
      if (why) throw new Altered("journal_altered", why, found as StoredHead);
      return found;
    },
    putHead: (head, seen) => write(head, headText, (content) => store.putHead(content, seen)),
  };
}

/** What shows that a document is not as its last writer left it; undefined where it is. */
export function alteredTask(task: Task, key: string, sealer: Sealer): string | undefined {
  if (task.id !== key) return `The document under ${key} is that of task ${String(task.id).slice(0, 200)}`;
  return unsound(`Task ${key}'s document`, sealIn(task), taskText(task, key), sealer);
}

export function alteredHead(head: Head, taskId: string, sealer: Sealer): string | undefined {
  if (head.taskId !== taskId)
    return `The journal under ${taskId} is that of task ${String(head.taskId).slice(0, 200)}`;
  return unsound(`Task ${taskId}'s journal`, sealIn(head), headText(head), sealer);
}

function unsound(what: string, seal: Seal | undefined, text: string, sealer: Sealer): string | undefined {
  if (seal === undefined)
    return sealer.acceptsUnsealed ? undefined : `${what} has no seal, and PAWL_SEAL_KEY asks for one`;
  if (sealer.isGenuine(seal.own, text)) return undefined;
  return sealer.isOfKnownKey(seal.own)
    ? `${what} was changed after its last writer sealed it`
    : `${what} is sealed with a key that PAWL_SEAL_KEY does not have (${keyName(seal)})`;
}

/** Which key it is, without anything of the key. */
function keyName({ own }: Seal): string {
  const id = keyIdOf(own);
  return id === "0" ? "none" : `its id is ${JSON.stringify(id.slice(0, 20))}`;
}
