import type { NatsConnection } from "@nats-io/nats-core";
import { firestoreRest } from "../../shared/adapters/firestore/rest.ts";
import { documentsOf } from "../documents.ts";

/** Where a bare function finds its message and its document. */
export interface BareEnv {
  readonly NATS_URL: string;
  readonly BARE_STREAM: string;
  readonly GOOGLE_CLOUD_PROJECT: string;
  readonly FIRESTORE_EMULATOR_HOST: string;
}

/**
 * The least that a woken function can do: connect, ask once for a message; if there is one, two guarded writes and a
 * confirmed ack. The documents' namespace is \`bare\`, and the message holds its document's revision.
 */
export async function bareRun(
  env: BareEnv,
  connect: (url: string) => Promise<NatsConnection>,
): Promise<object> {
  const nc = await connect(env.NATS_URL);
  try {
    const pull = `$JS.API.CONSUMER.MSG.NEXT.${env.BARE_STREAM}.runner`;
    // A message comes under its own subject, not under that of the request: the shared inbox would not know it.
    const alone = { timeout: 5_000, noMux: true };
    const message = await nc.request(pull, JSON.stringify({ batch: 1, no_wait: true }), alone);
    if (!message.reply) return { completed: 0 };
    const { id, revision } = message.json<{ id: string; revision: string }>();
    const store = firestoreRest({
      projectId: env.GOOGLE_CLOUD_PROJECT,
      namespace: "bare",
      requestTimeout: 5_000,
      origin: `http://${env.FIRESTORE_EMULATOR_HOST}`,
      token: async () => "owner",
    });
    const { claimed, completed } = documentsOf(id);
    const first = await store.replace(claimed, revision);
    if (first.kind !== "written") throw new Error("The claim was refused");
    await store.replace(completed, first.revision);
    await nc.request(message.reply, "+ACK", { timeout: 5_000 });
    return { completed: 1 };
  } finally {
    await nc.close();
  }
}
