import { Kvm } from "@nats-io/kv";
import type { Wired } from "../../functions/wire.node.ts";
import { emulatorHost } from "./stores.ts";

type Fields = Readonly<Record<string, unknown>>;

/** The store's documents past Pawl, as anybody with access to it can write them. */
export interface Raw {
  /** This text under a task's id, with whatever belongs to it. On Firestore with these fields besides. */
  putTask(id: string, text: string, fields?: Fields): Promise<void>;
  putHead(id: string, text: string): Promise<void>;
}

/** Of a wired world: project is none where the store is NATS KV. */
export async function raw({ nc, settings, store }: Wired, project: string | undefined): Promise<Raw> {
  const { namespace } = settings;
  if (store.name.startsWith("NATS")) {
    const kv = await new Kvm(nc).open(`${namespace}-tasks`);
    return {
      putTask: async (id, text) => void (await kv.put(`task.${id}`, text)),
      putHead: async (id, text) => void (await kv.put(`journal.${id}`, text)),
    };
  }
  const root = `http://${emulatorHost}/v1/projects/${project}/databases/(default)/documents`;
  const put = async (path: string, fields: Fields) => {
    const mask = Object.keys(fields).map((name) => `updateMask.fieldPaths=${name}`);
    const answer = await fetch(`${root}/${path}?${mask.join("&")}`, {
      method: "PATCH",
      headers: { authorization: "Bearer owner" },
      body: JSON.stringify({ fields }),
    });
    if (!answer.ok) throw new Error(await answer.text());
  };
  const json = (text: string) => ({ json: { stringValue: text } });
  return {
    putTask: (id, text, fields = {}) => put(`${namespace}-tasks/${id}`, { ...json(text), ...fields }),
    putHead: (id, text) => put(`${namespace}-journals/${id}`, json(text)),
  };
}
