import { type Command, InvalidArgumentError } from "commander";
import { parseDuration } from "../../../shared/values/duration.ts";
import { say, sayJson } from "../output.ts";

interface Options {
  readonly all?: boolean;
  readonly list?: boolean;
  readonly target?: string;
  readonly report?: string;
  readonly jobs: number;
  readonly patience?: number;
  readonly verbose?: boolean;
  readonly json?: boolean;
}

const duration = (text: string): number => {
  const ms = parseDuration(text);
  if (ms) return ms;
  throw new InvalidArgumentError('It should be a duration such as "60s".');
};
const jobsOf = (text: string): number => {
  if (/^[1-9]\d?$/.test(text)) return Number(text);
  throw new InvalidArgumentError("It should be a whole number from 1 to 99.");
};

export function addDrill(program: Command): void {
  program
    .command("drill")
    .description(
      "do a fault for real (kill, freeze, cut off, restart), and judge the five promises by what was seen outside",
    )
    .argument("[names...]", "which drills; --list says which there are")
    .option("--all", "all that can be run here")
    .option("--list", "say which drills there are, and run none")
    .option(
      "--target <namespace>",
      "on the servers that the environment names, in a namespace that is the drills' alone",
    )
    .option("--report <folder>", "write a report as evidence: drills.md, drills.html and drills.json")
    .option("--jobs <n>", "how many at once, on the throw-away stack", jobsOf, 4)
    .option(
      "--patience <duration>",
      "how long a task may take to its end before it counts as lost (60s; ten ack_waits where that is more)",
      duration,
    )
    .option("-v, --verbose", "say what happens in each drill")
    .option("--json", "every result in JSON, a line each, and a last line with the verdict")
    .addHelpText(
      "after",
      `
Without --target everything is thrown away: a nats-server of their own, and Firestore's emulator where it is found.
With it only drills that do things to processes are run, one after the other: nobody's servers are killed or filled.
Ends with 0 when all promises held in every drill that was run, 1 when one was broken or a drill could not be carried out,
2 when it was used wrongly, 130 when it was stopped by Ctrl-C.
What each does, and what is judged: docs/drills.md
Examples:
  pawl drill crash-before-ack
  pawl drill --all --report evidence
  NATS_URL=… PAWL_STORE=… pawl drill --all --target staging-drills`,
    )
    .action(async (names: readonly string[], options: Options, command: Command) => {
      const { all = false, list = false } = options;
      // Of other commands nobody waits for it.
      const { drills } = await import("../../drills/table.ts");
      const unknown = names.find((name) => !drills.some((one) => one.name === name));
      if (unknown !== undefined)
        command.error(`There is no drill ${JSON.stringify(unknown)}: pawl drill --list says which there are`);
      if (all && names.length > 0) command.error("Name drills, or say --all, not both");
      if (!list && !all && names.length === 0)
        command.error("Name a drill, or say --all: pawl drill --list says which there are");
      const chosen = names.length > 0 ? drills.filter(({ name }) => names.includes(name)) : drills;
      const { listLines, asJson } = await import("../../drills/report/list.ts");
      if (list) {
        if (options.json) for (const one of chosen) sayJson(asJson(one));
        else for (const line of listLines(chosen)) say(line);
        return;
      }
      const { practise } = await import("../../drills/practise.ts");
      process.exitCode = await practise(chosen, options);
    });
}
