import { Console } from "node:console";
import { messageOf } from "../shared/errors/errors.ts";
import type { Log } from "../shared/ports/log.ts";

/** Called by a command before it runs an author's handler, which shares its process from then on. */
export function hostAuthorsCode(log: Log): void {
  // Standard output is for the answer; what an agent prints goes where the log goes.
  globalThis.console = new Console(process.stderr);
  // A promise that an agent forgot to await must not end the tasks of every lane, nor a replay, nor a deploy.
  process.on("unhandledRejection", (reason) => {
    const stack = reason instanceof Error ? reason.stack : undefined;
    log("error", "agent.unhandled-rejection", { reason: messageOf(reason), stack });
  });
}
