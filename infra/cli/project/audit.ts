import { type Command, Option } from "commander";
import type { Config } from "../../../functions/wiring/config.ts";
import { wire } from "../../../functions/wiring/wire.node.ts";
import { type AuditEntry, operations } from "../../../shared/audit/entry.ts";
import { type AuditFilter, listAudit } from "../../../shared/audit/read.ts";
import { verifyAudit } from "../../../shared/audit/verify.ts";
import { sayActor } from "../../../shared/ports/actor.ts";
import type { Deps } from "../../../shared/ports/deps.ts";
import { parseDuration } from "../../../shared/values/duration.ts";
import { logger, say, sayJson } from "../output.ts";

interface Options {
  readonly since?: string;
  readonly until?: string;
  readonly actor?: string;
  readonly task?: string;
  readonly op?: string;
  readonly limit: string;
  readonly cursor?: string;
  readonly all?: boolean;
  readonly verify?: boolean;
  readonly anchor?: string;
  readonly json?: boolean;
}

const PAGE = 500;

export function addAudit(program: Command, config: () => Config): void {
  program
    .command("audit")
    .description(
      "who did what: cancels, redrives, signals, approvals, resolutions, tokens, quotas; the newest first",
    )
    .option("--since <when>", "from then on: 2026-11-16, 2026-11-16T06:00Z, or 7d ago")
    .option("--until <when>", "up to then")
    .option("--actor <who>", "by this owner, caller or token's id")
    .option("--task <id>", "to this task")
    .addOption(new Option("--op <operation>", "only these").choices(operations))
    .option("--limit <n>", "how many at once", "50")
    .option("--cursor <n>", "go on where the last page ended")
    .option("--all", "all of them, however many: with --json an export")
    .option("--verify", "check that nothing was altered or removed, and list nothing")
    .option("--anchor <text>", "with --verify: that the entry which an earlier --verify named is there still")
    .option("--json", "one entry a line, as it was written")
    .addHelpText(
      "after",
      "\nWith --verify it ends with 1 when something was altered or removed.\nExamples:\n  pawl audit --task order-7\n  pawl audit --since 30d --all --json > audit.jsonl\n  pawl audit --verify",
    )
    .action(async (options: Options, command: Command) => {
      const { verify, anchor, cursor, all, json = false } = options;
      const limit = Number(options.limit);
      if (!Number.isInteger(limit) || limit < 1 || limit > 1_000)
        command.error(`--limit ${options.limit}: it should be a whole number from 1 to 1000`);
      if (cursor !== undefined && !/^[1-9]\d{0,14}$/.test(cursor))
        command.error(`--cursor ${cursor}: it should be a number, as the last page said it`);
      if (anchor !== undefined && !verify) command.error("--anchor needs --verify");
      const filter: AuditFilter = {
        ...(options.since !== undefined && { since: moment(options.since, "--since", command) }),
        ...(options.until !== undefined && { until: moment(options.until, "--until", command) }),
        ...(options.actor !== undefined && { actor: options.actor }),
        ...(options.task !== undefined && { task: options.task }),
        ...(options.op !== undefined && { op: options.op }),
      };
      await using deps = await wire(config(), logger(json));
      if (verify) return await sayVerified(deps, anchor, json);
      await list(deps, filter, { limit, all: all ?? false, json, ...(cursor && { cursor: Number(cursor) }) });
    });
}

async function sayVerified(deps: Deps, anchor: string | undefined, json: boolean): Promise<void> {
  const verified = await verifyAudit(deps, anchor);
  const { problems, entries, first, last } = verified;
  if (json) sayJson(verified);
  else {
    for (const problem of problems) say(problem);
    const range = entries > 0 ? `, ${first} to ${last}` : "";
    const entry = entries === 1 ? "entry" : "entries";
    if (problems.length === 0) say(`the trail is as it was written: ${entries} ${entry}${range}`);
    if (problems.length === 0 && verified.anchor)
      say(`  keep this elsewhere, for a later look: --anchor ${verified.anchor}`);
  }
  if (problems.length > 0) process.exitCode = 1;
}

async function list(
  deps: Deps,
  filter: AuditFilter,
  { limit, all, json, cursor }: { limit: number; all: boolean; json: boolean; cursor?: number },
): Promise<void> {
  // The outcome stands before what it is the outcome of: that is said once.
  const ended = new Set<number>();
  let count = 0;
  for (let from = cursor, isFirst = true; isFirst || from !== undefined; isFirst = false) {
    const page = await listAudit(deps, filter, all ? PAGE : limit - count, from);
    for (const entry of page.entries) {
      if (entry.of !== undefined) ended.add(entry.of);
      if (json) sayJson(entry);
      else if (entry.outcome !== "asked" || !ended.has(entry.n)) say(line(entry));
    }
    count += page.entries.length;
    from = page.cursor === undefined ? undefined : Number(page.cursor);
    if (all || from === undefined || count < limit) continue;
    if (json) process.stderr.write(`more: --cursor ${from}\n`);
    else say(`more: --cursor ${from}, or --all`);
    return;
  }
  if (count === 0 && !json) say("nothing in the trail");
}

function line({ n, at, actor, op, task, agent, token, detail, outcome, code }: AuditEntry): string {
  const when = new Date(at).toISOString().slice(0, 19);
  const how = outcome === "asked" ? "asked, and nobody wrote how it ended" : outcome;
  // What is done to an agent itself names nothing else; a quota's detail does.
  const what = [task ?? token ?? (detail === undefined ? agent : undefined), detail && `(${detail})`]
    .filter(Boolean)
    .join(" ");
  return `${String(n).padStart(6)}  ${when}  ${op.padEnd(12)} ${what}  ${how}${code ? ` ${code}` : ""}  by ${sayActor(actor)}`;
}

/** A date, or so long ago. */
function moment(text: string, name: string, command: Command): number {
  const ago = parseDuration(text);
  const at = ago === undefined ? Date.parse(text) : Date.now() - ago;
  if (Number.isNaN(at))
    command.error(`${name} ${text}: write 2026-11-16, 2026-11-16T06:00Z, or 7d for a week ago`);
  return at;
}
