import { Kvm } from "@nats-io/kv";
import type { Wired } from "../../../functions/wiring/wire.node.ts";
import { toFields, WRITTEN_AT } from "../../../shared/adapters/firestore/codec.ts";
import { encodeValue } from "../../../shared/adapters/firestore/query.ts";
import type { Task } from "../../../shared/task/document.ts";
import { emulatorHost } from "./stores.ts";

type Fields = Readonly<Record<string, unknown>>;

/** The store's documents past Pawl, as anybody with access to it can write them. */
export interface Raw {
  /** This text under a task's id, with whatever belongs to it. On Firestore with these fields besides. */
  putTask(id: string, text: string, fields?: Fields): Promise<void>;
  putHead(id: string, text: string): Promise<void>;
  /** A whole document under an id, on Firestore with all that queries look for and the time of the write. */
  putDocument(id: string, task: Task, fields?: Fields): Promise<void>;
  removeTask(id: string): Promise<void>;
  removeRecord(name: string): Promise<void>;
}

/** Of a wired world: project is none where the store is NATS KV. */
export async function raw({ nc, settings, store }: Wired, project: string | undefined): Promise<Raw> {
  const { namespace } = settings;
  if (store.name.startsWith("NATS")) {
    const kv = await new Kvm(nc).open(`${namespace}-tasks`);
    const putTask = async (id: string, text: string) => void (await kv.put(`task.${id}`, text));
    return {
      putTask,
      putHead: async (id, text) => void (await kv.put(`journal.${id}`, text)),
      putDocument: (id, task) => putTask(id, JSON.stringify(task)),
      removeTask: (id) => kv.purge(`task.${id}`),
      removeRecord: (name) => kv.purge(`record.${name}`),
    };
  }
  const database = `projects/${project}/databases/(default)`;
  const root = `http://${emulatorHost}/v1/${database}/documents`;
  const ask = async (method: string, url: string, body?: object) => {
    const answer = await fetch(url, {
      method,
      headers: { authorization: "Bearer owner" },
      ...(body && { body: JSON.stringify(body) }),
    });
    if (!answer.ok) throw new Error(await answer.text());
  };
  const put = (path: string, fields: Fields) => {
    const mask = Object.keys(fields).map((name) => `updateMask.fieldPaths=${name}`);
    return ask("PATCH", `${root}/${path}?${mask.join("&")}`, { fields });
  };
  const json = (text: string) => ({ json: { stringValue: text } });
  const encoded = (fields: object) =>
    Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, encodeValue(value)]));
  return {
    putTask: (id, text, fields = {}) => put(`${namespace}-tasks/${id}`, { ...json(text), ...fields }),
    putHead: (id, text) => put(`${namespace}-journals/${id}`, json(text)),
    putDocument: (id, task, fields = {}) => {
      const name = `${database}/documents/${namespace}-tasks/${id}`;
      const update = { name, fields: { ...encoded(toFields(task)), ...fields } };
      const updateTransforms = [{ fieldPath: WRITTEN_AT, setToServerValue: "REQUEST_TIME" }];
      return ask("POST", `${root}:commit`, { writes: [{ update, updateTransforms }] });
    },
    removeTask: (id) => ask("DELETE", `${root}/${namespace}-tasks/${id}`),
    removeRecord: (name) => ask("DELETE", `${root}/${namespace}-records/${name}`),
  };
}
