import { Console } from "node:console";
import type { Command } from "commander";
import type { Config } from "../../../functions/wiring/config.ts";
import { wire } from "../../../functions/wiring/wire.node.ts";
import { messageOf } from "../../../shared/errors/errors.ts";
import { serve } from "../../../shared/runner/serve.ts";
import type { Settings } from "../../../shared/settings/settings.ts";
import { agentsFolder, lanesKnown, loadAgent } from "../../agents.ts";
import { logger, say, sayJson } from "../output.ts";

export function addRun(program: Command, config: () => Config): void {
  program
    .command("run")
    .description("run an agent's tasks in this process, until stopped")
    .argument("<agent>", "name of a file in the agents folder")
    .option("--once", "handle at most one task, then end")
    .option("--drain", "end when the agent's queues are empty")
    .option("--json", "log and answer in JSON lines")
    .addHelpText(
      "after",
      "\nTasks that fail don't change the exit code: see pawl status.\nExample:\n  pawl run echo --drain",
    )
    .action(
      async (
        name: string,
        options: { once?: boolean; drain?: boolean; json?: boolean },
        command: Command,
      ) => {
        if (options.once && options.drain) command.error("--once and --drain exclude each other: choose one");
        const mode = options.once ? "once" : options.drain ? "drain" : "forever";
        const agent = await loadAgent(name, agentsFolder());
        const { settings, ...rest } = config();
        const log = logger(options.json ?? false);
        const stop = stopSignal(settings);
        // Standard output is for the answer; what an agent prints goes where the log goes.
        globalThis.console = new Console(process.stderr);
        // A promise that an agent forgot to await must not end the tasks of every lane.
        process.on("unhandledRejection", (reason) => {
          const stack = reason instanceof Error ? reason.stack : undefined;
          log("error", "agent.unhandled-rejection", { reason: messageOf(reason), stack });
        });
        await using deps = await wire({ settings, ...rest }, log);
        log("info", "run.started", { agent: name, mode, bus: deps.bus.name, store: deps.store.name });
        const lanesOf = await lanesKnown(agentsFolder());
        // Loaded only where there is a key.
        const model = rest.model && (await import("../../../functions/wiring/model.ts")).modelOf(rest);
        const handled = await serve({ ...deps, ...model, lanesOf }, { name, agent, mode, stop: stop.signal });
        if (options.json) sayJson({ agent: name, stopped: stop.signal.aborted, handled });
        else say(`${name}: ${summary(handled)}`);
        if (handled.retry && !options.json)
          say("  retries wait for their time: run again, or without --drain");
        stop.done();
      },
    );
}

function summary(handled: Readonly<Record<string, number>>): string {
  const parts = Object.entries(handled).map(([as, count]) => `${count} ${as}`);
  return parts.length > 0 ? parts.join(", ") : "nothing to do";
}

/**
 * SIGTERM and Ctrl-C ask once: the handler's signal aborts and the task is handed off. Whoever does not want to wait
 * asks twice. After the grace period the process ends in any case; what it held is redelivered.
 */
function stopSignal(settings: Settings): { signal: AbortSignal; done(): void } {
  const controller = new AbortController();
  let deadline: NodeJS.Timeout | undefined;
  const ask = () => {
    if (controller.signal.aborted) process.exit(130);
    controller.abort(new Error("told to stop"));
    deadline = setTimeout(() => process.exit(1), settings.stopGrace);
  };
  process.on("SIGTERM", ask);
  process.on("SIGINT", ask);
  return { signal: controller.signal, done: () => clearTimeout(deadline) };
}
