import { Command, CommanderError } from "commander";
import { configFrom } from "../../functions/config.ts";
import { sayError } from "./output.ts";
import { addRun } from "./run.ts";
import { addStatus } from "./status.ts";
import { addSubmit } from "./submit.ts";

const ENVIRONMENT = `
Environment:
  NATS_URL                        nats://, tls://, ws:// or wss:// address of the server
  NATS_CREDS                      path of a credentials file; or
  NATS_USER, NATS_PASSWORD        a user and password
  PAWL_STORE                      firestore, firestore-rest or nats-kv: where task documents are kept
  GOOGLE_CLOUD_PROJECT            for both firestore stores
  GOOGLE_APPLICATION_CREDENTIALS  path of a service account's key, for both firestore stores
  FIRESTORE_EMULATOR_HOST         host:port of an emulator instead
  PAWL_NAMESPACE                  prefix of streams, subjects and collections (pawl)
  PAWL_AGENTS_DIR                 folder of agent files (agents/)
Timing and limits, with their defaults: docs/settings.md

Exit codes: 0 done, 1 something is wrong, 2 used wrongly`;

const program = new Command("pawl")
  .description("Runs AI agents' tasks exactly once, on NATS JetStream and a document store")
  .addHelpText("after", ENVIRONMENT)
  .showHelpAfterError("(see pawl --help)")
  .exitOverride();

const config = () => configFrom(process.env);
addRun(program, config);
addSubmit(program, config);
addStatus(program, config);

try {
  await program.parseAsync();
} catch (error) {
  if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? 0 : 2;
  else process.exitCode = sayError(error, process.argv.includes("--json"));
}
// A client that still retries in the background must not keep a finished command alive.
process.exit();
