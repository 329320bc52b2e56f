import { Altered, PawlError } from "../errors/errors.ts";
import { type Deps, mark } from "../ports/deps.ts";
import type { Stored, StoredHead } from "../ports/store.ts";
import { apply } from "../task/transitions.ts";
import { hashInput } from "../values/json.ts";

export interface Accepted {
  /** What another hand had changed, and is sealed anew. */
  readonly document: boolean;
  readonly journal: boolean;
}

/** A person has looked at a document and its journal, and says that they are right as they are. */
export async function accept(deps: Deps, id: string): Promise<Accepted> {
  const found = await altered(() => deps.store.get(id));
  if (found === undefined && !(await deps.store.get(id)))
    throw new PawlError("task_unknown", `There is no task ${id} in ${deps.store.name}`);
  if (found) await acceptDocument(deps, id, found as Stored);
  const head = (await altered(() => deps.store.getHead(id))) as StoredHead | undefined;
  if (head) await acceptJournal(deps, id, head);
  return { document: found !== undefined, journal: head !== undefined };
}

async function acceptDocument(deps: Deps, id: string, { task, revision }: Stored): Promise<void> {
  if (task.id !== id)
    throw new PawlError(
      "document_altered",
      `The document under ${id} is that of task ${task.id}: it can't be accepted here. Put it back under its own id, and restore ${id} from a backup`,
    );
  const note = "changed by another hand, and accepted as it is";
  // A task's messages are told by their input from those of other work.
  const accepted = { ...task, inputHash: hashInput(task.input) };
  const written = await deps.store.replace(apply(accepted, { type: "accept", note }, mark(deps)), revision);
  if (written.kind === "refused") throw moved(id);
}

async function acceptJournal(deps: Deps, id: string, { head, revision }: StoredHead): Promise<void> {
  if (head.taskId !== id)
    throw new PawlError(
      "journal_altered",
      `The journal under ${id} is that of task ${head.taskId}: it can't be accepted here`,
    );
  if ((await deps.store.putHead(head, revision)).kind === "refused") throw moved(id);
}

function moved(id: string): PawlError {
  return new PawlError("store_unavailable", `Task ${id} was changed meanwhile. Look at it again`);
}

/** What was read, if it is not as its last writer left it. */
async function altered(read: () => Promise<unknown>): Promise<Altered["found"] | undefined> {
  try {
    await read();
    return undefined;
  } catch (error) {
    if (error instanceof Altered) return error.found;
    throw error;
  }
}
