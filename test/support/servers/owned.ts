import { jetstreamManager } from "@nats-io/jetstream";
import type { Wired } from "../../../functions/wiring/wire.node.ts";
import { emptyHead } from "../../../shared/journal/entries.ts";
import { submitted } from "../../../shared/task/create.ts";
import type { Task } from "../../../shared/task/document.ts";
import { agentBucket, bucketName } from "../../../shared/task/names.ts";
import { apply } from "../../../shared/task/transitions.ts";
import { type EmptyStore, emulatorHost } from "./stores.ts";

const mark = () => ({ now: Date.now(), stamp: crypto.randomUUID(), by: "test" });

/** A task in the store, failed unless it lives, with a journal and parts beside it. */
export async function owning(
  { store, settings, nc }: EmptyStore,
  id: string,
  parts = 2,
  lives = false,
): Promise<Task> {
  const { now: at, stamp, by } = mark();
  const first = submitted({ id, agent: "a", lane: 0, input: {}, inputHash: "h", at, stamp, by }, "Q");
  const created = await store.create(first);
  if (created.kind !== "written") throw new Error(`${id} was not created`);
  const holder = { queue: "Q", seq: 1, token: "t", runner: "r", via: "s", lease: 10 };
  const running = apply(first, { type: "claim", ...holder }, mark());
  const error = { code: "unexpected", message: "for a test", phase: "handler" } as const;
  const expiresAt = Date.now() + settings.retention;
  const last = lives
    ? running
    : apply(running, { type: "fail", error, countsAttempt: true, ended: true, expiresAt }, mark());
  const before = await store.getHead(id);
  await store.putHead(emptyHead(last, 1, stamp), before?.revision);
  for (let i = 0; i < parts; i++) await store.putPart(id, `value-${i}`, `${id} ${last.stamp} ${i}`);
  // What a replicated bucket has of each task besides.
  const bucket = settings.isolation === "shared" ? bucketName(settings) : agentBucket(settings, "a");
  if (store.name.startsWith("NATS")) nc?.publish(`$KV.${bucket}.lease.${id}`, "1");
  await store.replace(last, created.revision);
  return last;
}

/** Whether all of it is there as `owning` made it, or nothing, or what else. */
export async function whatIsLeft(
  { store }: Pick<EmptyStore, "store">,
  id: string,
  parts = 2,
): Promise<"all" | "nothing" | string> {
  const found = [
    (await store.get(id)) && "document",
    (await store.getHead(id)) && "journal",
    ...(await Promise.all(
      Array.from({ length: parts }, async (_, i) => (await store.getPart(id, `value-${i}`)) && `part ${i}`),
    )),
  ].filter((one) => one !== undefined);
  if (found.length === 0) return "nothing";
  return found.length === parts + 2 ? "all" : found.join(", ");
}

/** The keys or paths of everything that the store has, but for its records. */
export async function everything(
  { nc, settings, store }: Wired,
  project: string | undefined,
): Promise<string[]> {
  if (store.name.startsWith("NATS")) {
    const stream = `KV_${settings.namespace}-tasks`;
    const info = await (await jetstreamManager(nc)).streams.info(stream, { subjects_filter: ">" });
    return Object.keys(info.state.subjects ?? {}).filter((subject) => !subject.includes(".record."));
  }
  const root = `http://${emulatorHost}/v1/projects/${project}/databases/(default)/documents`;
  const found: string[] = [];
  for (const collection of ["tasks", "journals", "parts", "texts", "removed"]) {
    const url = `${root}/${settings.namespace}-${collection}?pageSize=300&mask.fieldPaths=stamp`;
    const answer = await fetch(url, { headers: { authorization: "Bearer owner" } });
    const { documents = [] } = (await answer.json()) as { documents?: { name: string }[] };
    found.push(...documents.map(({ name }) => name));
  }
  return found;
}
