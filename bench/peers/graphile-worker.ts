import { rate, timed } from "../rounds.ts";
import type { Peer } from "../systems.ts";
import { load } from "./peers.ts";
import { type Pool, pgPool, startPostgres } from "./postgres.ts";

interface Logger {
  readonly isLogger?: true;
}
interface Options {
  readonly pgPool: Pool;
  readonly concurrency?: number;
  readonly noHandleSignals?: boolean;
  readonly logger: Logger;
  readonly taskList?: Readonly<Record<string, () => Promise<void>>>;
}
interface Library {
  readonly Logger: new (factory: () => () => void) => Logger;
  run(options: Options): Promise<{ stop(): Promise<void> }>;
  runMigrations(options: Options): Promise<void>;
}

/** Jobs that are there when the worker starts, until none is left: each is removed when it is done. */
export async function openGraphileWorker(): Promise<Peer> {
  await using stack = new AsyncDisposableStack();
  const postgres = stack.use(await startPostgres());
  const { run, runMigrations, Logger } = await load<Library>("graphile-worker");
  const pool = await pgPool(postgres.url);
  stack.defer(() => pool.end());
  const common = { pgPool: pool, logger: new Logger(() => () => {}) };
  await runMigrations(common);
  const owned = stack.move();
  return {
    rate: async ({ tasks, lanes }) => {
      await pool.query(
        `select count(graphile_worker.add_job('noop', json_build_object('text', 'hello'))) from generate_series(1, ${tasks})`,
      );
      const all = Promise.withResolvers<void>();
      let left = tasks;
      const noop = async () => {
        if (--left === 0) all.resolve();
      };
      let runner: { stop(): Promise<void> } | undefined;
      const ms = await timed(async () => {
        runner = await run({ ...common, concurrency: lanes, noHandleSignals: true, taskList: { noop } });
        await all.promise;
      });
      await runner?.stop();
      return rate(tasks, ms);
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
