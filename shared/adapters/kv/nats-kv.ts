import { jetstream, jetstreamManager, type MsgRequest } from "@nats-io/jetstream";
import { type KV, Kvm } from "@nats-io/kv";
import type { NatsConnection } from "@nats-io/nats-core";
import { isPawlError, PawlError } from "../../errors/errors.ts";
import {
  isListed,
  type Revision,
  type TaskPage,
  type TaskStore,
  type Unread,
  type WriteResult,
} from "../../ports/store.ts";
import type { Settings } from "../../settings/settings.ts";
import type { Task } from "../../task/document.ts";
import { readHead, readTask } from "../../task/shape.ts";
import { documentText } from "../../values/document-text.ts";
import { fillOf } from "../jetstream/look.ts";
import { apiCode, isOff, isRefusal, NO_MESSAGE, NO_ROOM, OFF, wordsOf } from "../jetstream/nats-errors.ts";
import { natsLink } from "../jetstream/nats-link.ts";
import { publishAck } from "../jetstream/publish-ack.ts";
import { plainHeaders } from "../jetstream/requests.ts";
import {
  type Bucket,
  headKey,
  MOST_CHARS,
  partKey,
  recordKey,
  taskIdOf,
  taskKey,
  textKey,
} from "./bucket.ts";
import { changeReader, foundAt, manyReader } from "./changes.ts";
import { dueIndex } from "./due.ts";
import { expirer } from "./expire.ts";
import { accountFill, fullest } from "./fill.ts";
import { leaseRegister, type Values } from "./lease.ts";
import { pick, type Scanned, scan } from "./scan.ts";

/** A page that looks for what is rare ends after so many documents, and is gone on with by its cursor. */
const MOST_SEEN = 10_000;
const WRONG_REVISION = new Set([10071, 10164]);

/** Documents in a NATS KV bucket: for those who run without Google. The caller closes the connection. */
export async function natsKv(nc: NatsConnection, settings: Settings): Promise<TaskStore> {
  const name = `${settings.namespace}-tasks`;
  const link = natsLink(nc, settings.requestTimeout);
  const { bucket, copies } = await asked(`Opening bucket ${name}`, () =>
    link(() => open(nc, name, settings)),
  );
  const js = jetstream(nc, { timeout: settings.requestTimeout });
  const jsm = await jetstreamManager(nc, { timeout: settings.requestTimeout, checkAPI: false });
  const ask = <T>(what: string, work: () => Promise<T>): Promise<T> => asked(what, () => link(work));

  const put = async (what: string, write: () => Promise<number>): Promise<WriteResult> =>
    asked(what, async () => {
      try {
        return { kind: "written", revision: String(await write()) };
      } catch (error) {
        if (WRONG_REVISION.has(apiCode(error) ?? 0)) return { kind: "refused" };
        throw error;
      }
    });

  /** Without a revision seen: only where there is nothing, or what was there was deleted by hand. */
  const putValue = async (what: string, key: string, text: string, seen?: Revision): Promise<WriteResult> => {
    const written = await put(what, async () => {
      const headers = plainHeaders({ "Nats-Expected-Last-Subject-Sequence": seen ?? "0" });
      return (await publishAck(link, { subject: `$KV.${name}.${key}`, data: text, headers })).seq;
    });
    if (written.kind === "written" || seen !== undefined) return written;
    return put(what, () => link(() => bucket.create(key, text)));
  };

  const values: Values = {
    get: (what, key) =>
      ask(what, async () => {
        const entry = await bucket.get(key);
        return entry?.operation === "PUT"
          ? { text: entry.string(), revision: String(entry.revision) }
          : undefined;
      }),
    put: putValue,
  };

  const textOf = (id: string) => values.get(`Reading task ${id}`, taskKey(id));

  const message = (what: string, query: MsgRequest) =>
    ask(what, async () => {
      try {
        return (await jsm.streams.getMessage(`KV_${name}`, query)) ?? undefined;
      } catch (error) {
        if (apiCode(error) === NO_MESSAGE) return undefined;
        throw error;
      }
    });

  const kv: Bucket = {
    kv: bucket,
    ask,
    guarded: (what, write) => put(what, () => link(write)),
    scan: (what, filters, range) =>
      scan({ js, bucket: name, ask: (work) => ask(what, work) }, filters, range),
    pick: (what, keys) => pick({ js, bucket: name, ask: (work) => ask(what, work) }, keys),
    purge: async (what, filter, upTo) => {
      const seq = upTo === undefined ? {} : { seq: upTo + 1 };
      const purge = () => jsm.streams.purge(`KV_${name}`, { filter: `$KV.${name}.${filter}`, ...seq });
      return (await ask(what, purge)).purged;
    },
    info: (what) => ask(what, () => jsm.streams.info(`KV_${name}`)),
    lastOf: async (what, filter) =>
      (await message(what, { last_by_subj: `$KV.${name}.${filter}` }))?.seq ?? 0,
    writtenFrom: async (what, seq) => {
      // The server knows it; the client's type leaves it out.
      const first = await message(what, { seq, next_by_subj: ">" } as { seq: number });
      return first && Date.parse(first.timestamp);
    },
  };
  const { indexed, due } = dueIndex(kv, values);

  /** The tasks last written in this range; none where they are too much to be held at once. */
  const pieceOf = async (what: string, from: number, to: number): Promise<Scanned[] | undefined> => {
    const piece: Scanned[] = [];
    let chars = 0;
    for await (const entry of kv.scan(what, ["task.*"], { from, to })) {
      piece.push(entry);
      chars += entry.text().length;
      if (chars > MOST_CHARS && piece.length > 1) return undefined;
    }
    return piece;
  };

  const getRecord: TaskStore["getRecord"] = (name) => values.get(`Reading record ${name}`, recordKey(name));
  const putRecord: TaskStore["putRecord"] = (name, text, seen) =>
    values.put(`Writing record ${name}`, recordKey(name), text, seen);

  /** Each as it was seen: one that was written since stays. */
  const removeOld = async (what: string, prefix: string, isOld: (name: string) => boolean): Promise<void> => {
    for await (const { key, revision } of kv.scan(what, [`${prefix}*`], { keysOnly: true }))
      if (isOld(key.slice(prefix.length))) await kv.purge(what, key, revision);
  };

  return {
    name: `NATS KV ${name}`,
    // Each list makes the server count the whole bucket: few large pages are better than many small ones.
    pageSize: 5_000,
    get: async (id) => {
      const found = await textOf(id);
      return found && { task: readTask(found.text, id, found.revision), revision: found.revision };
    },
    create: (task) =>
      indexed(task, () => putValue(`Creating task ${task.id}`, taskKey(task.id), documentText(task))),
    replace: async (task, seen: Revision) => {
      // It may come from a message's header, which anyone can write; 0 would mean "create".
      if (!/^[1-9]\d{0,15}$/.test(seen)) return { kind: "refused" };
      return indexed(task, () =>
        putValue(`Writing task ${task.id}`, taskKey(task.id), documentText(task), seen),
      );
    },
    ...(copies > 1 && { attest: leaseRegister(values) }),
    due,
    /** The bucket's stream has the documents in the order of their last writes: it is read from its end, piece by piece. */
    list: async (filter, limit, cursor) => {
      if (cursor !== undefined && !/^[1-9]\d{0,14}$/.test(cursor))
        throw new PawlError("input_invalid", `${JSON.stringify(cursor.slice(0, 200))} is not a valid cursor`);
      const what = "Listing tasks";
      const end = cursor === undefined ? (await kv.info(what)).state.last_seq : Number(cursor) - 1;
      const tasks: Task[] = [];
      const unreadable: Unread[] = [];
      const pageOf = (cursor?: string): TaskPage => ({
        tasks,
        looked: seen,
        ...(cursor !== undefined && { cursor }),
        ...(unreadable.length > 0 && { unreadable }),
      });
      let seen = 0;
      let chars = 0;
      for (let to = end, size = limit; to > 0; ) {
        const from = Math.max(1, to - size + 1);
        const piece = await pieceOf(what, from, to);
        // Too much to be held at once: a smaller piece, the newest part of it.
        if (!piece) {
          size = Math.ceil((to - from + 1) / 8);
          continue;
        }
        for (const entry of piece.reverse()) {
          const found = foundAt(taskIdOf(entry.key), entry.revision, entry.text());
          chars += entry.text().length;
          if ("unreadable" in found) unreadable.push({ key: found.key, why: found.unreadable });
          else if (isListed(found.task, filter)) tasks.push(found.task);
          if (tasks.length === limit || ++seen === MOST_SEEN || chars > MOST_CHARS)
            return pageOf(String(entry.revision));
        }
        to = from - 1;
        size *= 2;
      }
      return pageOf();
    },
    ...changeReader(kv),
    getMany: manyReader(textOf),
    getHead: async (taskId) => {
      const found = await values.get(`Reading the journal of ${taskId}`, headKey(taskId));
      return found && { head: readHead(found.text, taskId, found.revision), revision: found.revision };
    },
    putHead: (head, seen) =>
      values.put(`Writing the journal of ${head.taskId}`, headKey(head.taskId), documentText(head), seen),
    putPart: async (taskId, name, text) => {
      await ask(`Storing a part of ${taskId}`, () => bucket.put(partKey(taskId, name), text));
    },
    getPart: async (taskId, name) =>
      (await values.get(`Reading a part of ${taskId}`, partKey(taskId, name)))?.text,
    removeParts: (taskId, isOld) => removeOld(`Removing parts of ${taskId}`, partKey(taskId, ""), isOld),
    expire: expirer(kv, { get: getRecord, put: putRecord }, settings.retention),
    getRecord,
    putRecord,
    putText: async (name, text) => {
      await ask(`Storing text ${name}`, () => bucket.put(textKey(name), text));
    },
    getText: async (name) => (await values.get(`Reading text ${name}`, textKey(name)))?.text,
    removeTexts: (isOld) => removeOld("Removing texts", textKey(""), isOld),
    usage: async () => {
      const what = "Asking how full the store is";
      // Who may use a bucket need not be allowed to ask about the account.
      const account = ask(what, () => jsm.getAccountInfo()).catch((error: unknown) => {
        if (!isPawlError(error, "store_refused")) throw error;
        return undefined;
      });
      const [stream, whole] = await Promise.all([kv.info(what), account]);
      return fullest(fillOf(stream), whole && accountFill(whole, copies));
    },
    close: async () => {},
  };
}

/**
 * `allow_direct` off: a follower's stale answer could prolong a lease that is lost. So could a leader's that was cut off
 * from the other copies, which nothing turns off: with more copies than one, claims are attested.
 */
async function open(
  nc: NatsConnection,
  name: string,
  settings: Settings,
): Promise<{ bucket: KV; copies: number }> {
  const kvm = new Kvm(jetstream(nc, { timeout: settings.requestTimeout }));
  const bucket = await kvm
    .create(name, {
      history: 1,
      replicas: settings.replicas,
      allow_direct: false,
      max_bytes: settings.storeBytes,
    })
    .catch((error: unknown) => {
      if (apiCode(error) !== NO_ROOM) throw error;
      throw new PawlError(
        "setting_invalid",
        `KV bucket ${name} can't be made: the NATS server has no ${settings.storeBytes} bytes left to set aside for it. Set PAWL_STORE_BYTES lower, or raise the server's max_file_store`,
      );
    });
  const { streamInfo } = await bucket.status();
  if (streamInfo.config.allow_direct) {
    throw new PawlError(
      "setting_invalid",
      `KV bucket ${name} allows direct gets, which may be stale. Turn it off: nats stream edit KV_${name} --no-allow-direct`,
    );
  }
  return { bucket, copies: streamInfo.config.num_replicas };
}

async function asked<T>(what: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (isPawlError(error)) throw error;
    if (isOff(error)) throw new PawlError("store_refused", `${what}: ${OFF}`, { cause: error });
    const code = isRefusal(error) ? "store_refused" : "store_unavailable";
    throw new PawlError(code, `${what}: ${wordsOf(error)}`, { cause: error });
  }
}
