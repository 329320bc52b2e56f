import type { Command } from "commander";
import type { Config } from "../../../functions/wiring/config.ts";
import { wire } from "../../../functions/wiring/wire.node.ts";
import { audited } from "../../../shared/audit/audited.ts";
import type { Deed } from "../../../shared/audit/entry.ts";
import { PawlError } from "../../../shared/errors/errors.ts";
import { counted, nameOf, type Report, verdictOf } from "../../../shared/reconcile/figures/report.ts";
import { kindOf, kindsBySeverity, leftOf } from "../../../shared/reconcile/findings/found.ts";
import { writers } from "../../../shared/reconcile/page/writers.ts";
import { lookBack, reconcile } from "../../../shared/reconcile/reconcile.ts";
import { agentsFolder, knownAgents } from "../../agents.ts";
import { commandActor } from "../actor.ts";
import { logger, say, sayJson } from "../output.ts";

interface Options {
  readonly from?: string;
  readonly to?: string;
  readonly repair: boolean;
  readonly all?: boolean;
  readonly json?: boolean;
}

export function addReconcile(program: Command, config: () => Config): void {
  program
    .command("reconcile")
    .description("explain every stream sequence since the last time, and write the week's report")
    .option("--from <date>", "look at an earlier period again, from the reconciliation before this date on")
    .option("--to <date>", "with --from: up to the reconciliation after this date; up to now by default")
    .option("--all", "read every document there is, and check its seal, also where nobody wrote it since")
    .option("--no-repair", "repair nothing")
    .option("--json", "the report in JSON")
    .addHelpText(
      "after",
      "\nEnds with 1 when something is broken: a sequence that nobody explains, a task completed twice.\nEnds with 0 otherwise, also where its first line says that there is something to do; used wrongly, with 2.\nWith --from nothing is kept and nothing repaired.\nExample:\n  pawl reconcile --no-repair",
    )
    .action(async (options: Options, command: Command) => {
      const { from, to, json = false, all: isWhole = false } = options;
      if (isWhole && from !== undefined) command.error("--all and --from exclude each other");
      if (to !== undefined && from === undefined) command.error("--to needs --from");
      const period = from === undefined ? undefined : { from: time(from), to: to ? time(to) : Date.now() };
      await using deps = await wire(config(), logger(json));
      const stop = new AbortController();
      // What was found out so far is kept: the next one goes on from there.
      process.once("SIGINT", () => stop.abort());
      const known = await knownAgents(agentsFolder(), "skip-broken");
      const lanes = Object.fromEntries(known.map((agent) => [agent.name, agent.lanes]));
      const onProgress = (documents: number) => {
        if (process.stderr.isTTY) process.stderr.write(`\r${documents} documents `);
      };
      const report = period
        ? await lookBack(deps, stop.signal, period)
        : (
            await audited({ ...deps, actor: commandActor() }, deed(options), () =>
              reconcile(deps, stop.signal, { repair: options.repair, writers, lanes, onProgress, isWhole }),
            )
          )?.report;
      if (process.stderr.isTTY) process.stderr.write("\n");
      if (!report) {
        say("stopped: call it again, and it goes on");
        process.exitCode = 130;
        return;
      }
      if (json) sayJson(report);
      else for (const line of summary(report)) say(line);
      if (!verdictOf(report).ok) process.exitCode = 1;
    });
}

/** What a reconciliation repairs, it does as itself: that a person asked for it, the trail says. */
const deed = ({ repair, all }: Options): Deed => ({
  op: "reconcile",
  ...((!repair || all) && { detail: [!repair && "--no-repair", all && "--all"].filter(Boolean).join(" ") }),
});

function time(text: string): number {
  const at = Date.parse(text);
  if (Number.isNaN(at))
    throw new PawlError(
      "usage",
      `${JSON.stringify(text)} is not a date. Write 2026-11-16, or 2026-11-16T06:00Z`,
    );
  return at;
}

/** How many findings are shown at most; the report has the rest. */
const MOST_SHOWN = 50;

/** For a person who has asked: the verdict, and what there is to do. */
export function summary(report: Report): string[] {
  const { findings, repairs, name, span } = report;
  const day = (at: number) => new Date(at).toISOString().slice(0, 16);
  const named = findings.named.map(
    ({ kind, subject, detail, mended }) =>
      `  ${nameOf(kind)}  ${subject}: ${detail}${mended ? " (mended)" : ""}`,
  );
  const kinds = kindsBySeverity(findings).filter(
    (kind) => kindOf(kind).severity === "note" || leftOf(findings, kind) > 0,
  );
  const more = named.length - MOST_SHOWN;
  return [
    verdictOf(report).line,
    `${name}: ${day(span.from)} to ${day(span.to)} UTC, ${counted(report.documents, "document")}`,
    ...named.slice(0, MOST_SHOWN),
    ...(more > 0 ? [`  … and ${counted(more, "finding")} more: pawl report --format md`] : []),
    ...kinds.map((kind) => `${nameOf(kind)}: ${kindOf(kind).todo}`),
    ...Object.entries(repairs).map(([what, count]) => `repaired: ${count} ${nameOf(what)}`),
  ];
}
