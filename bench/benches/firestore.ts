import { HOW_TO_GET, startEmulator } from "../../infra/local/emulator.ts";
import { firestoreRest } from "../../shared/adapters/firestore/rest.ts";
import type { TaskStore } from "../../shared/ports/store.ts";
import { type Bench, type Figure, NotHere, type Stage } from "../bench.ts";
import { type Documents, documentsOf } from "../documents.ts";
import { openBare } from "../floors/bare.ts";
import { drain, enqueue, noop, openPawl } from "../pawl.ts";
import { each, interleaved, rate, timed } from "../rounds.ts";

const TASKS = 200;
const PROJECT = "bench";

interface Client {
  readonly store: "firestore" | "firestore-rest";
  readonly open: (host: string, namespace: string) => Promise<TaskStore>;
}

const common = (namespace: string) => ({ projectId: PROJECT, namespace, requestTimeout: 5_000 });
const clients = {
  gRPC: {
    store: "firestore",
    // Loaded only when chosen: it takes half a second.
    open: async (emulatorHost, namespace) =>
      (await import("../../shared/adapters/firestore/grpc.ts")).firestoreGrpc({
        ...common(namespace),
        emulatorHost,
      }),
  },
  REST: {
    store: "firestore-rest",
    open: async (host, namespace) =>
      firestoreRest({ ...common(namespace), origin: `http://${host}`, token: async () => "owner" }),
  },
} satisfies Record<string, Client>;

/** Next, two guarded writes by the same client, confirmed ack: without seals, decisions, heartbeats. */
async function bareRate({ open }: Client, host: string, tasks: number): Promise<number> {
  await using bare = await openBare(1);
  const [name = ""] = bare.lanes;
  const store = await open(host, `bare-${crypto.randomUUID().slice(0, 8)}`);
  const known = new Map<string, { documents: Documents; revision: string }>();
  await each(tasks, 16, async () => {
    const id = crypto.randomUUID();
    const documents = documentsOf(id);
    const written = await store.create(documents.created);
    if (written.kind !== "written") throw new Error("A new document was refused");
    known.set(id, { documents, revision: written.revision });
    await bare.js.publish(`${name}.${id}`, documents.message);
  });
  const consumer = await bare.js.consumers.get(name, "runner");
  const ms = await timed(async () => {
    for (let left = tasks; left > 0; left--) {
      const message = await consumer.next({ expires: 5_000 });
      const task = known.get(message?.subject.split(".")[1] ?? "");
      if (!message || !task) throw new Error(`Nothing came, with ${left} tasks left`);
      const first = await store.replace(task.documents.claimed, task.revision);
      if (first.kind !== "written") throw new Error("A guarded write was refused");
      await store.replace(task.documents.completed, first.revision);
      await message.ackAck();
    }
  });
  await store.close();
  return rate(tasks, ms);
}

async function pawlRate({ store }: Client, host: string, tasks: number): Promise<number> {
  const namespace = `bench-${crypto.randomUUID().slice(0, 8)}`;
  const where = { GOOGLE_CLOUD_PROJECT: PROJECT, FIRESTORE_EMULATOR_HOST: host };
  await using deps = await openPawl({ PAWL_STORE: store, PAWL_NAMESPACE: namespace, ...where });
  await enqueue(deps, tasks);
  return (await drain(deps, noop(), tasks)).rate;
}

function firestore(by: keyof typeof clients): Bench {
  return {
    what: `no-op tasks on the Firestore emulator by ${by}, 1 lane, queued before`,
    floor: "next, two guarded writes by the same client, confirmed ack",
    required: ">= 0.9 ×",
    run: async (stage: Stage): Promise<Figure[]> => {
      await using emulator = await startEmulator();
      if (!emulator) throw new NotHere(`There is no Firestore emulator: ${HOW_TO_GET}`);
      // Even for an emulator the client would search the network for Google's metadata server, and warn.
      process.env.METADATA_SERVER_DETECTION ??= "none";
      const tasks = stage.size(TASKS, 16);
      const { bare = [], pawl = [] } = await interleaved(stage, {
        bare: () => bareRate(clients[by], emulator.host, tasks),
        pawl: () => pawlRate(clients[by], emulator.host, tasks),
      });
      const against = { name: "bare, same client", values: bare };
      return [
        { what: `no-op tasks, Firestore by ${by}`, unit: "/s", pawl, against, required: { least: 0.9 } },
      ];
    },
  };
}

export const firestoreBenches = {
  "noop-firestore": firestore("gRPC"),
  "noop-firestore-rest": firestore("REST"),
};
