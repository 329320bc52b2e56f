import { rate, timed } from "../rounds.ts";
import type { Peer } from "../systems.ts";
import { load } from "./peers.ts";
import { startPostgres } from "./postgres.ts";

interface Boss {
  on(event: "error", heard: () => void): void;
  start(): Promise<unknown>;
  stop(options: { graceful: boolean }): Promise<void>;
  createQueue(name: string): Promise<void>;
  insert(queue: string, jobs: readonly { data: object }[]): Promise<unknown>;
  fetch(queue: string): Promise<readonly { id: string }[]>;
  complete(queue: string, id: string): Promise<unknown>;
}
interface Library {
  readonly PgBoss: new (options: { connectionString: string; max: number }) => Boss;
}

const QUEUE = "noop";

/** Fetch, complete, in as many loops as there are lanes: its own workers only look every half second. */
export async function openPgBoss(): Promise<Peer> {
  await using stack = new AsyncDisposableStack();
  const postgres = stack.use(await startPostgres());
  const { PgBoss } = await load<Library>("pg-boss");
  const boss = new PgBoss({ connectionString: postgres.url, max: 20 });
  boss.on("error", () => {});
  await boss.start();
  stack.defer(() => boss.stop({ graceful: false }));
  await boss.createQueue(QUEUE);
  const owned = stack.move();
  return {
    rate: async ({ tasks, lanes }) => {
      await boss.insert(
        QUEUE,
        Array.from({ length: tasks }, () => ({ data: { text: "hello" } })),
      );
      let done = 0;
      const loop = async () => {
        for (;;) {
          const [job] = await boss.fetch(QUEUE);
          if (!job) return;
          await boss.complete(QUEUE, job.id);
          done++;
        }
      };
      const ms = await timed(() => Promise.all(Array.from({ length: lanes }, loop)));
      if (done !== tasks) throw new Error(`pg-boss did ${done} of ${tasks}`);
      return rate(tasks, ms);
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
