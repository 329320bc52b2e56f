import { jetstream, jetstreamManager, type MsgRequest } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/nats-core";
import { isPawlError, PawlError, Unreadable } from "../../errors/errors.ts";
import type { Revision, TaskStore, WriteResult } from "../../ports/store.ts";
import type { Settings } from "../../settings/settings.ts";
import { bucketName, confinedPrefix } from "../../task/names.ts";
import { readHead, readTask } from "../../task/shape.ts";
import { documentText } from "../../values/document-text.ts";
import { fillOf } from "../jetstream/look.ts";
import { apiCode, isOff, isRefusal, NO_MESSAGE, OFF, wordsOf } from "../jetstream/nats-errors.ts";
import { natsLink } from "../jetstream/nats-link.ts";
import { publishAck } from "../jetstream/publish-ack.ts";
import { plainHeaders } from "../jetstream/requests.ts";
import { type Bucket, headKey, type Place, partKey, recordKey, taskKey, textKey } from "./bucket.ts";
import type { BucketStore } from "./bucket-store.ts";
import { changeReader, foreign, foundAt, foundOf, manyReader } from "./changes.ts";
import { dueIndex } from "./due.ts";
import { expirer } from "./expire.ts";
import { accountFill, fullest } from "./fill.ts";
import { leaseRegister, type Values } from "./lease.ts";
import { listed, newestOf, readPlace } from "./list.ts";
import { openBucket, optionsOf } from "./make.ts";
import { pick, type ScanRange, scan, scanned } from "./scan.ts";
import { walking } from "./walk.ts";

const WRONG_REVISION = new Set([10071, 10164]);

/** Documents in a NATS KV bucket: for those who run without Google. The caller closes the connection. */
export async function natsKv(
  nc: NatsConnection,
  settings: Settings,
  place: Place = { name: bucketName(settings) },
): Promise<BucketStore> {
  const { name, agent, isConfined } = place;
  const link = natsLink(nc, settings.requestTimeout);
  const { bucket, copies } = await asked(`Opening bucket ${name}`, () =>
    link(() => openBucket(nc, place, settings)),
  );
  const js = jetstream(nc, optionsOf(settings, place));
  const jsm = await jetstreamManager(nc, { ...optionsOf(settings, place), checkAPI: false });
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

  const subjectOf = (key: string) => `${isConfined ? `${confinedPrefix(settings)}.` : ""}$KV.${name}.${key}`;

  /** Without a revision seen: only where there is nothing, or what was there was deleted by hand. */
  const putValue = async (what: string, key: string, text: string, seen?: Revision): Promise<WriteResult> => {
    const written = await put(what, async () => {
      const headers = plainHeaders({ "Nats-Expected-Last-Subject-Sequence": seen ?? "0" });
      return (await publishAck(link, { subject: subjectOf(key), data: text, headers })).seq;
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

  const read: BucketStore["read"] = (id, { text, revision }) => {
    const task = readTask(text, id, revision);
    const why = agent === undefined ? undefined : foreign(task, agent, settings.namespace);
    if (why !== undefined) throw new Unreadable(`Task ${id}`, { key: id, why, text, revision });
    return { task, revision };
  };

  const message = (what: string, query: MsgRequest) =>
    ask(what, async () => {
      try {
        return (await jsm.streams.getMessage(`KV_${name}`, query)) ?? undefined;
      } catch (error) {
        if (apiCode(error) === NO_MESSAGE) return undefined;
        throw error;
      }
    });

  // The server knows it; the client's type leaves it out.
  const firstFrom = (what: string, seq: number, next_by_subj: string) =>
    message(what, { seq, next_by_subj } as { seq: number });

  const prefix = `$KV.${name}.`;
  const last = async (what: string, key: string) => {
    const found = await message(what, { last_by_subj: prefix + key });
    return found && scanned(found, prefix);
  };

  const kv: Bucket = {
    kv: bucket,
    ask,
    guarded: (what, write) => put(what, () => link(write)),
    found: agent === undefined ? foundAt : foundOf(agent, settings.namespace),
    ...(isConfined
      ? walking(message, name)
      : {
          scan: (what: string, filters: readonly string[], range?: ScanRange) =>
            scan({ js, bucket: name, ask: (work) => ask(what, work) }, filters, range),
        }),
    pick: (what, keys) => pick((key) => last(what, key), keys),
    purge: async (what, filter, upTo) => {
      // What leads nowhere is removed by those who may.
      if (isConfined) return 0;
      const seq = upTo === undefined ? {} : { seq: upTo + 1 };
      const purge = () => jsm.streams.purge(`KV_${name}`, { filter: prefix + filter, ...seq });
      return (await ask(what, purge)).purged;
    },
    info: (what) => ask(what, () => jsm.streams.info(`KV_${name}`)),
    lastOf: async (what, filter) => (await last(what, filter))?.revision ?? 0,
    hasUpTo: async (what, filter, revision) => {
      const first = await firstFrom(what, 1, prefix + filter);
      return first !== undefined && first.seq <= revision;
    },
    writtenFrom: async (what, seq) => {
      const first = await firstFrom(what, seq, ">");
      return first && Date.parse(first.timestamp);
    },
  };
  const { indexed, due } = dueIndex(kv, values);

  const newest = newestOf(kv);

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
    ...(isConfined && { isPart: true }),
    // Each page takes several round trips before its first document: few large pages are better than many small ones.
    pageSize: 5_000,
    get: async (id) => {
      const found = await textOf(id);
      return found && read(id, found);
    },
    read,
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
    list: async (filter, limit, cursor) => {
      const end = cursor === undefined ? undefined : readPlace(cursor);
      return listed([{ name: "", newest, found: kv.found, before: end }], filter, limit);
    },
    newest,
    values,
    bucket: kv,
    ...changeReader(kv),
    getMany: manyReader(async (id) => {
      const stored = await textOf(id);
      return stored && { ...stored, found: kv.found };
    }),
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
    expire: isConfined ? async () => 0 : expirer(kv, { get: getRecord, put: putRecord }, settings.retention),
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
