import type { Command } from "commander";
import type { Config } from "../../../functions/wiring/config.ts";
import { checkSecrets, redacted, redactorOf } from "../../../functions/wiring/secrets.ts";
import { wire } from "../../../functions/wiring/wire.node.ts";
import { familyOf } from "../../../shared/definition.ts";
import { PawlError } from "../../../shared/errors/errors.ts";
import { serve } from "../../../shared/runner/serve.ts";
import type { Settings } from "../../../shared/settings/settings.ts";
import { agentNames, agentsFolder, knownAgents, loadAgent } from "../../agents.ts";
import { hostAuthorsCode } from "../../authors-code.ts";
import { logger, say, sayJson } from "../output.ts";

interface Options {
  readonly all?: boolean;
  readonly once?: boolean;
  readonly drain?: boolean;
  readonly json?: boolean;
}

export function addRun(program: Command, config: () => Config): void {
  program
    .command("run")
    .description("run agents' tasks in this process, until stopped")
    .argument("[agents...]", "names of files in the agents folder")
    .option("--all", "every agent in the folder")
    .option("--once", "handle at most one task of each agent, then end")
    .option("--drain", "end when the agents' queues are empty")
    .option("--json", "log and answer in JSON lines, one for each agent")
    .addHelpText(
      "after",
      "\nTasks that fail don't change the exit code: see pawl status.\nExample:\n  pawl run echo --drain\n  pawl run digest summarize",
    )
    .action(async (given: string[], options: Options, command: Command) => {
      if (options.once && options.drain) command.error("--once and --drain exclude each other: choose one");
      if ((options.all ?? false) === given.length > 0) command.error("Give agents' names, or --all");
      const mode = options.once ? "once" : options.drain ? "drain" : "forever";
      const names = options.all ? await agentNames(agentsFolder()) : [...new Set(given)];
      if (names.length === 0)
        throw new PawlError("agent_unknown", `There are no agents in ${agentsFolder()}: pawl new writes one`);
      const agents = await Promise.all(
        names.map(async (name) => ({ name, agent: await loadAgent(name, agentsFolder()) })),
      );
      const { settings, ...rest } = config();
      for (const { name, agent } of agents) checkSecrets(name, agent.secrets, process.env);
      const redact = redactorOf(
        agents.flatMap(({ agent }) => agent.secrets),
        process.env,
      );
      const log = redacted(logger(options.json ?? false), redact);
      const stop = stopSignal(settings);
      hostAuthorsCode(log);
      const known = await knownAgents(agentsFolder(), "skip-broken");
      const [first = ""] = names;
      if (settings.isolation === "accounts" && names.length > 1)
        throw new PawlError(
          "setting_invalid",
          "PAWL_ISOLATION is accounts: an identity at NATS is one agent's. Start a process for each of them",
        );
      const who = { name: first, reaches: familyOf(first, known) };
      await using wired = await wire({ settings, ...rest }, log, who);
      for (const { name } of agents)
        log("info", "run.started", { agent: name, mode, bus: wired.bus.name, store: wired.store.name });
      const lanesOf = (name: string) => known.find((one) => one.name === name)?.lanes;
      // Loaded only where there is a key.
      const wiring = rest.model && (await import("../../../functions/wiring/model.ts"));
      const deps = { ...wired, ...wiring?.modelOf({ settings, ...rest }, wired.nc), lanesOf, redact };
      await serveAll(agents, stop.signal, async ({ name, agent }, until) => {
        const handled = await serve(deps, { name, agent, mode, stop: until });
        if (options.json) sayJson({ agent: name, stopped: stop.signal.aborted, handled });
        else say(`${name}: ${summary(handled)}`);
        if (handled.retry && !options.json)
          say("  retries wait for their time: run again, or without --drain");
      });
      stop.done();
    });
}

/** All of them at once. One that can't go on takes the others down with it, in good order: they hand off what they hold. */
async function serveAll<One>(
  all: readonly One[],
  stop: AbortSignal,
  serveOne: (one: One, stop: AbortSignal) => Promise<void>,
): Promise<void> {
  const broken = new AbortController();
  const until = AbortSignal.any([stop, broken.signal]);
  const ended = await Promise.allSettled(
    all.map((one) =>
      serveOne(one, until).catch((error: unknown) => {
        broken.abort(error);
        throw error;
      }),
    ),
  );
  for (const one of ended) if (one.status === "rejected") throw one.reason;
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
