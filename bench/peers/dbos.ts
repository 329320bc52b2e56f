import { each, rate, timed } from "../rounds.ts";
import type { Peer } from "../systems.ts";
import { load } from "./peers.ts";
import { startPostgres } from "./postgres.ts";

type Workflow = (steps: number) => Promise<object>;
interface Library {
  readonly DBOS: {
    setConfig(config: object): void;
    launch(): Promise<void>;
    shutdown(): Promise<void>;
    registerWorkflow(work: Workflow, options: { name: string }): Workflow;
    runStep(work: () => Promise<unknown>, options: { name: string }): Promise<unknown>;
    startWorkflow(work: Workflow): (steps: number) => Promise<{ getResult(): Promise<unknown> }>;
  };
}

/**
 * Workflows that are started and awaited by as many loops as there are lanes. That is without a queue: its queues look for
 * work only every second.
 */
export async function openDbos(): Promise<Peer> {
  await using stack = new AsyncDisposableStack();
  const postgres = stack.use(await startPostgres());
  const { DBOS } = await load<Library>("@dbos-inc/dbos-sdk");
  const noop = DBOS.registerWorkflow(
    async (steps) => {
      for (let i = 0; i < steps; i++) await DBOS.runStep(async () => null, { name: `step-${i}` });
      return { ok: true };
    },
    // A name is taken for as long as this process lives.
    { name: `noop-${crypto.randomUUID()}` },
  );
  DBOS.setConfig({
    name: "bench",
    systemDatabaseUrl: postgres.url.replace(/postgres$/, "dbos"),
    logLevel: "error",
    runAdminServer: false,
  });
  await DBOS.launch();
  stack.defer(() => DBOS.shutdown());
  const owned = stack.move();
  return {
    rate: async ({ tasks, lanes, steps }) => {
      const one = async () => (await DBOS.startWorkflow(noop)(steps)).getResult();
      return rate(tasks, await timed(() => each(tasks, lanes, one)));
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
