import { readFileSync } from "node:fs";
import { Command, CommanderError } from "commander";
import { configFrom } from "../../functions/wiring/config.ts";
import { errorKinds } from "../../shared/errors/errors.ts";
import { sayError, sayJson } from "./output.ts";
import { addBuild } from "./project/build.ts";
import { addDemo } from "./project/demo.ts";
import { addDeploy } from "./project/deploy.ts";
import { addDev } from "./project/dev.ts";
import { addNew } from "./project/new.ts";
import { addReconcile } from "./project/reconcile.ts";
import { addReport } from "./project/report.ts";
import { addToken } from "./project/token.ts";
import { addAgents } from "./tasks/agents.ts";
import { addDlq } from "./tasks/dlq.ts";
import { addEvents } from "./tasks/events.ts";
import { addOperate } from "./tasks/operate.ts";
import { addRun } from "./tasks/run.ts";
import { addStatus } from "./tasks/status.ts";
import { addSubmit } from "./tasks/submit.ts";
import { addTasks } from "./tasks/tasks.ts";
import { addTop } from "./tasks/top.ts";

const { version } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as {
  version: string;
};

const ENVIRONMENT = `
Environment:
  NATS_URL                        nats://, tls://, ws:// or wss:// address of the server
  NATS_CREDS                      path of a credentials file; or
  NATS_USER, NATS_PASSWORD        a user and password
  PAWL_STORE                      firestore, firestore-rest or nats-kv: where task documents are kept
  GOOGLE_CLOUD_PROJECT            for both firestore stores
  GOOGLE_APPLICATION_CREDENTIALS  path of a service account's key, for both firestore stores
  FIRESTORE_EMULATOR_HOST         host:port of an emulator instead
  ANTHROPIC_API_KEY               for agents that ask a model (ANTHROPIC_BASE_URL: another address)
  PAWL_NAMESPACE                  prefix of streams, subjects and collections (pawl)
  PAWL_WAKE_URL, PAWL_RUN_SECRET  where a submit wakes the agent's function, and what it asks for
  PAWL_SEAL_KEY                   what documents are sealed with; several are separated by commas, the newest first
  PAWL_WEBHOOK_URL, PAWL_WEBHOOK_SECRET  who is told of tasks that failed, wait or are in doubt
  PAWL_CORS_ORIGIN                the one origin that browsers may call the API from
  PAWL_RATE_LIMIT                 requests a minute that one token may make of the API (600)
  PAWL_AGENTS_DIR                 folder of agent files (agents/)
Timing and limits, with their defaults: docs/settings.md

Exit codes: 0 done, 1 something is wrong, 2 used wrongly, 130 stopped by a second Ctrl-C`;

const program = new Command("pawl")
  .version(version)
  .description("Runs AI agents' tasks exactly once, on NATS JetStream and a document store")
  .addHelpText("after", ENVIRONMENT)
  .showHelpAfterError("(see pawl --help)")
  .exitOverride();

/** Commander has said it on standard error; machines get it on standard output too. */
function usage(error: CommanderError): number {
  if (error.exitCode === 0) return 0;
  if (process.argv.includes("--json")) sayJson({ error: { code: "usage", message: error.message } });
  else if (error.code === "commander.excessArguments") {
    process.stderr.write(`Did the shell split an input? Quote it: pawl submit echo '{"text": "hello"}'\n`);
  }
  return errorKinds.usage.exitCode;
}

const config = () => configFrom(process.env);
addRun(program, config);
addSubmit(program, config);
addStatus(program, config);
addEvents(program, config);
addTasks(program, config);
addAgents(program, config);
addTop(program, config);
addDlq(program, config);
addOperate(program, config);
addReconcile(program, config);
addReport(program, config);
addToken(program, config);
addNew(program);
addBuild(program);
addDeploy(program);
addDev(program);
addDemo(program);

try {
  await program.parseAsync();
} catch (error) {
  if (error instanceof CommanderError) process.exitCode = usage(error);
  else process.exitCode = sayError(error, process.argv.includes("--json"));
}
// A client that still retries in the background must not keep a finished command alive.
process.exit();
