import { resolve } from "node:path";
import { type Command, Option } from "commander";
import type { Config } from "../../../functions/wiring/config.ts";
import { wire } from "../../../functions/wiring/wire.node.ts";
import { exportJournal } from "../../../shared/replay/exported.ts";
import { type ReplayedFile, replayFiles, replayOn } from "../../../shared/replay/files.ts";
import type { Difference } from "../../../shared/replay/replay.ts";
import { differenceLines, replayLines } from "../../../shared/replay/said.ts";
import { checkTaskId } from "../../../shared/task/names.ts";
import { parseDuration } from "../../../shared/values/duration.ts";
import { agentsFolder, loadAgent } from "../../agents.ts";
import { hostAuthorsCode } from "../../authors-code.ts";
import { logger, say, sayJson } from "../output.ts";
import { taskNamed } from "./status.ts";

interface Options {
  readonly against?: string;
  readonly allow: readonly Difference["kind"][];
  readonly timeout: string;
  readonly json?: boolean;
}

const HELP = `
The handler runs on the journal that is there, on the code of the agents folder, and gets from it what its calls returned.
The first call that has no result there ends it: no step, effect, model or child is begun, nothing is written, and nothing
is asked of NATS or the store but the task itself. What the handler does beside its calls it does here too: Pawl can't
prevent that.
A file or a folder is named with a dot or slash: journals/ or ./hello-1.json. In a folder only what differs is shown.
Kinds of differences:
  calls   the handler makes other calls than the journal has: a task under way would fail with journal_mismatch
  error   it throws, or never goes on, where the journal goes on
  input   its schema does not accept the task's input any more
  agent   it is gone, or can't be loaded
  prompt  a model would be asked something else, by a hash of the whole request. A task under way goes on with the old answer
  result  a completed task would have another result
Ends with 1 if anything differs that --allow does not name.
Examples:
  pawl replay hello-1
  pawl replay journals/ --against agents/ --allow prompt,result`;

/** All kinds; one that is forgotten here does not compile. */
const KINDS: Readonly<Record<Difference["kind"], true>> = {
  agent: true,
  input: true,
  calls: true,
  error: true,
  prompt: true,
  result: true,
};

export function addReplay(program: Command, config: () => Config): void {
  program
    .command("replay")
    .description("run a task's handler on its journal, without an effect: what it would do, and what differs")
    .argument("<what...>", "tasks' ids; or files of pawl journal export, or folders of them")
    .option("--against <folder>", "agents of this folder (PAWL_AGENTS_DIR)")
    .addOption(
      new Option("--allow <kinds>", "kinds of differences that are meant, such as prompt,result")
        .argParser((text) => kindsOf(text, program))
        .default([], "none"),
    )
    .option("--timeout <duration>", "how long a handler's own code may take", "30s")
    .option("--json", "one JSON object a task: calls, ends, differences")
    .addHelpText("after", HELP)
    .action(async (given: string[], { against, allow, timeout, json = false }: Options, command: Command) => {
      if (!parseDuration(timeout)) command.error(`--timeout ${timeout}: it should be a duration such as 30s`);
      const folder = against === undefined ? agentsFolder() : resolve(against);
      const agentOf = (name: string) => loadAgent(name, folder);
      hostAuthorsCode(logger(json));
      let tasks = 0;
      let different = 0;
      const told = ({ file, journal, replay }: ReplayedFile, isShort: boolean) => {
        const differences = replay.differences.filter(({ kind }) => !allow.includes(kind));
        tasks++;
        if (differences.length > 0) different++;
        if (json) return sayJson({ ...(file && { file }), ...replay, differences });
        if (!isShort) for (const line of replayLines(journal, { ...replay, differences })) say(line);
        else if (differences.length > 0)
          for (const line of [`${file}: ${replay.task} of ${replay.agent}`, ...differenceLines(differences)])
            say(line);
      };
      for (const what of given) {
        if (/[./\\]/.test(what)) {
          const isShort = !what.endsWith(".json");
          for await (const one of replayFiles(what, agentOf, { timeout })) told(one, isShort);
          continue;
        }
        checkTaskId(what);
        await using deps = await wire(config(), logger(json));
        const journal = await exportJournal(deps, await taskNamed(deps, what));
        told({ file: "", journal, replay: await replayOn(journal, agentOf, { timeout }) }, false);
      }
      if (!json) say(`${tasks} replayed, ${different === 0 ? "none differs" : `${different} different`}`);
      if (different > 0) process.exitCode = 1;
    });
}

function kindsOf(text: string, program: Command): Difference["kind"][] {
  const kinds = text.split(",").map((one) => one.trim());
  const wrong = kinds.find((one) => !Object.hasOwn(KINDS, one));
  if (wrong !== undefined)
    program.error(`--allow ${wrong}: it should be some of ${Object.keys(KINDS).join(", ")}`);
  return kinds as Difference["kind"][];
}
