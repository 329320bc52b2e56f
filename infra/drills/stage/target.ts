import type { Config } from "../../../functions/wiring/config.ts";
import { isPawlError, PawlError } from "../../../shared/errors/errors.ts";
import { lookOn } from "./observer.ts";
import { AGENT, FRUGAL } from "./stage.ts";

const OURS: ReadonlySet<string> = new Set([AGENT, FRUGAL]);

/**
 * Drills take whatever lies in their queues, kill who works on it, and reconcile their namespace: where anything of somebody
 * else's is in it, none is run.
 */
export async function checkTarget(config: Config): Promise<void> {
  const { namespace } = config.settings;
  await using deps = await lookOn(config).catch((error: unknown) => {
    if (!isPawlError(error, "store_refused") && !isPawlError(error, "bus_refused")) throw error;
    throw new PawlError(
      error.code,
      `--target ${namespace}: ${error.message}. This identity may not use that namespace: pawl creds --drills ${namespace} writes one that may`,
      { cause: error },
    );
  });
  const refused = (what: string) =>
    new PawlError(
      "usage",
      `--target ${namespace} has ${what}, which is not of drills. Drills take messages, kill runners and leave dead letters, so they need a namespace of their own: choose one that nothing else uses`,
    );
  const queue = (await deps.bus.queues()).find(({ agent }) => !OURS.has(agent));
  if (queue) throw refused(`a queue of the agent ${queue.agent}`);
  for (let after: string | undefined, isLast = false; !isLast; ) {
    const page = await deps.store.changes(after, 100);
    const other = page.documents.find((one) => "task" in one && !OURS.has(one.task.agent));
    if (other && "task" in other) throw refused(`task ${other.task.id} of the agent ${other.task.agent}`);
    after = page.cursor;
    isLast = page.isLast;
  }
}
