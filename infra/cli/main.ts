import "../../shared/values/older-node.ts";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Command, CommanderError } from "commander";
import { configFrom } from "../../functions/wiring/config.ts";
import { errorKinds } from "../../shared/errors/errors.ts";
import { functionVariables } from "../../shared/settings/functions.ts";
import { serverVariables } from "../../shared/settings/servers.ts";
import { localVariables } from "../../shared/settings/tools.ts";
import type { Variable } from "../../shared/settings/variable.ts";
import { missingPackage } from "../missing.ts";
import { PACKAGE, withDocs } from "../project.ts";
import { endWhenSaid, sayError, sayJson } from "./output.ts";
import { addAudit } from "./project/audit.ts";
import { addBuild } from "./project/build.ts";
import { addCompletion } from "./project/completion.ts";
import { addCreds } from "./project/creds.ts";
import { addDemo } from "./project/demo.ts";
import { addDeploy } from "./project/deploy.ts";
import { addDev } from "./project/dev.ts";
import { addDoctor } from "./project/doctor.ts";
import { addDrill } from "./project/drill.ts";
import { addInit } from "./project/init.ts";
import { addNew } from "./project/new.ts";
import { addQuota } from "./project/quota.ts";
import { addReconcile } from "./project/reconcile.ts";
import { addReport } from "./project/report.ts";
import { addToken } from "./project/token.ts";
import { addAgents } from "./tasks/agents.ts";
import { addDlq } from "./tasks/dlq.ts";
import { addEvents } from "./tasks/events.ts";
import { addJournal } from "./tasks/journal.ts";
import { addLogs } from "./tasks/logs.ts";
import { addOperate } from "./tasks/operate.ts";
import { addPause } from "./tasks/pause.ts";
import { addReplay } from "./tasks/replay.ts";
import { addRun } from "./tasks/run.ts";
import { addStatus } from "./tasks/status.ts";
import { addSubmit } from "./tasks/submit.ts";
import { addTasks } from "./tasks/tasks.ts";
import { addTop } from "./tasks/top.ts";

const { version } = JSON.parse(readFileSync(join(PACKAGE, "package.json"), "utf8")) as {
  version: string;
};

const { PAWL_AGENTS_DIR, PAWL_ACTOR } = localVariables;

/** The first sentence of a variable's meaning, as plain text. */
function inShort([name, { meaning, default: text, unset }]: [string, Variable]): string {
  const plain = meaning.replaceAll(/ \(\[[^)]*\)\)|`/g, "");
  const byDefault = unset ?? text;
  const [sentence = ""] = plain.split(/\.(?= |$)/);
  return `  ${name.padEnd(32)}${sentence}${byDefault === undefined ? "" : ` (${byDefault})`}`;
}

const ENVIRONMENT = `
Environment:
${Object.entries<Variable>({ ...serverVariables, ...functionVariables, PAWL_AGENTS_DIR, PAWL_ACTOR })
  .map(inShort)
  .join("\n")}
Forms and defaults, timing and limits: docs/settings.md

Exit codes: 0 done, 1 something is wrong, 2 used wrongly, 130 stopped by a second Ctrl-C`;

const program = new Command("pawl")
  .version(version)
  .description("Runs AI agents' tasks exactly once, on NATS JetStream and a document store")
  .addHelpText("after", withDocs(ENVIRONMENT))
  .showHelpAfterError("(see pawl --help)")
  .exitOverride();

/** Commander has said it on standard error; machines get it on standard output too. */
function usage(error: CommanderError): number {
  if (error.exitCode === 0) return 0;
  if (process.argv.includes("--json")) sayJson({ error: { code: "usage", message: error.message } });
  else if (error.code === "commander.excessArguments" && /'(submit|signal)'/.test(error.message)) {
    process.stderr.write(`Did the shell split an input? Quote it: pawl submit echo '{"text": "hello"}'\n`);
  }
  return errorKinds.usage.exitCode;
}

const config = () => configFrom(process.env);
addRun(program, config);
addSubmit(program, config);
addStatus(program, config);
addEvents(program, config);
addLogs(program, config);
addJournal(program, config);
addReplay(program, config);
addTasks(program, config);
addAgents(program, config);
addTop(program, config);
addDlq(program, config);
addOperate(program, config);
addPause(program, config);
addReconcile(program, config);
addReport(program, config);
addToken(program, config);
addQuota(program, config);
addAudit(program, config);
addInit(program);
addNew(program);
addCreds(program);
addDoctor(program, version);
addBuild(program);
addDeploy(program);
addDev(program);
addDrill(program);
addDemo(program);
addCompletion(program);

// Whoever reads may have enough, as `head` does: what is said after that is nobody's loss.
for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {});

try {
  await program.parseAsync();
} catch (error) {
  if (error instanceof CommanderError) process.exitCode = usage(error);
  else process.exitCode = sayError(missingPackage(error) ?? error, process.argv.includes("--json"));
}
// A client that still retries in the background must not keep a finished command alive.
await endWhenSaid();
