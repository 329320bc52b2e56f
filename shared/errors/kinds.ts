import { authorErrors } from "./author.ts";
import type { ErrorKind } from "./kind.ts";
import { queueErrors } from "./queue.ts";
import { storeErrors } from "./store.ts";
import { webErrors } from "./web.ts";

/** The one error family. A code is the anchor of its paragraph in docs/errors.md, which is printed from this table. */
export const errorKinds = {
  ...authorErrors,
  ...queueErrors,
  ...storeErrors,
  ...webErrors,
  agent_invalid: {
    disposition: "fail",
    status: 500,
    exitCode: 2,
    meaning: "An agent's file does not default-export what `defineAgent` returns, or a field of it is wrong.",
    remedy: "Correct the file and field that the message names.",
  },
  agent_name_invalid: {
    disposition: "fail",
    status: 422,
    exitCode: 2,
    meaning: "An agent's name can't be part of a stream name and a subject.",
    remedy: "Rename the file in agents/: a letter, then a-z 0-9 - (63 characters at most).",
  },
  agent_unknown: {
    disposition: "fail",
    status: 422,
    exitCode: 2,
    meaning: "There is no such file in the agents folder.",
    remedy: "Check the spelling against the names the message lists, or set PAWL_AGENTS_DIR.",
  },
  bundle_too_large: {
    disposition: "fail",
    status: 500,
    exitCode: 1,
    meaning: "An agent function's bundle for Workers is over its size limit: a large bundle starts slowly.",
    remedy:
      'Import less in the agent: the message names what takes most. Or raise the limit in package.json: `"pawl": { "bundleLimitKiB": 1024 }`.',
  },
  crash_loop: {
    disposition: "fail",
    status: 500,
    exitCode: 1,
    meaning: "The process running the task died again and again without finishing it.",
    remedy:
      "Look at the platform's logs for what kills it: memory, time limits, an uncaught exception. Then `pawl dlq redrive` it.",
  },
  deploy_failed: {
    disposition: "fail",
    status: 500,
    exitCode: 1,
    meaning: "A program that a deploy runs (wrangler, gcloud) failed.",
    remedy: "Read its output above. Deploying again is safe.",
  },
  deploy_incomplete: {
    disposition: "fail",
    status: 500,
    exitCode: 1,
    meaning: "Something that a deploy needs is missing: a login, a secret, a program. Nothing was changed.",
    remedy: "Run the commands that the message names, then deploy again.",
  },
  id_conflict: {
    disposition: "fail",
    status: 409,
    exitCode: 2,
    meaning: "The id belongs to a task with another agent or input.",
    remedy: "Use another id for other work. For the same work, send the same input.",
  },
  illegal_transition: {
    disposition: "abandon",
    status: 409,
    exitCode: 1,
    meaning: "A change was asked for that the task's state does not allow.",
    remedy: "Read the task with `pawl status`: somebody else has moved it on.",
  },
  input_invalid: {
    disposition: "fail",
    status: 422,
    exitCode: 2,
    meaning: "The input does not match the agent's schema, or no task can have it.",
    remedy: "Correct what the message names.",
  },
  input_too_large: {
    disposition: "fail",
    status: 413,
    exitCode: 2,
    meaning: "The input is over the size limit.",
    remedy: "Keep large values elsewhere and pass a reference, or raise PAWL_INPUT_LIMIT.",
  },
  lease_lost: {
    disposition: "abandon",
    status: 500,
    exitCode: 1,
    meaning: "This runner can no longer prove that it holds the task, so it stopped and wrote nothing.",
    remedy:
      "Nothing: the next delivery goes on. If it is frequent, look for frozen processes or a slow store.",
  },
  question_moved: {
    disposition: "fail",
    status: 409,
    exitCode: 1,
    meaning: "The task no longer asks the question that was answered: somebody else answered first.",
    remedy: "Look at the task again, and answer what it asks now.",
  },
  quota_exceeded: {
    disposition: "retry",
    status: 429,
    exitCode: 1,
    meaning:
      "The owner, or the agent, of a task that was submitted has taken all that its quota allows. Nothing of the submit was stored. A parent whose child is refused so waits, and submits it again.",
    remedy:
      "Submit it again after the time that the message, and a Retry-After header, say. `pawl quota ls` shows what is used of what; `pawl quota set` allows more.",
  },
  redrive_refused: {
    disposition: "fail",
    status: 409,
    exitCode: 1,
    meaning:
      "This dead letter can't be redriven so: it is a message that is not a task, or its journal has no such entry to begin from.",
    remedy:
      "Of a message, read the bytes with `pawl status --json`, and submit the work anew. Of a journal, choose one of the entries that the message names.",
  },
  scope_missing: {
    disposition: "fail",
    status: 403,
    exitCode: 1,
    meaning: "An API token lacks the scope that a request needs.",
    remedy: "Use a token with it: `pawl token create --scope submit,read,operate`.",
  },
  secret_missing: {
    disposition: "fail",
    status: 500,
    exitCode: 2,
    meaning: "A secret that the agent declares is not set where it runs. No task was claimed.",
    remedy: "Set it (docs/author.md#secrets): its tasks wait meanwhile, and lose no attempt.",
  },
  setting_invalid: {
    disposition: "fail",
    status: 500,
    exitCode: 2,
    meaning: "A setting is missing, malformed, or contradicts another.",
    remedy: "Set what the message names.",
  },
  task_id_invalid: {
    disposition: "fail",
    status: 422,
    exitCode: 2,
    meaning: "The task's id can't be used in a NATS subject or as a document's id.",
    remedy: "Use 1 to 128 of the characters A-Z a-z 0-9 _ - and not __ at both ends.",
  },
  task_unknown: {
    disposition: "fail",
    status: 404,
    exitCode: 1,
    meaning: "There is no document with this id in this namespace and store.",
    remedy: "Check the id, PAWL_NAMESPACE and PAWL_STORE.",
  },
  unexpected: {
    disposition: "retry",
    status: 500,
    exitCode: 1,
    meaning: "An error that Pawl did not expect.",
    remedy: "Read the stack. If it is Pawl's own, please report it.",
  },
  usage: {
    disposition: "fail",
    status: 500,
    exitCode: 2,
    meaning: "A command was called with wrong arguments.",
    remedy: "See the command's --help.",
  },
} as const satisfies Record<string, ErrorKind>;

export type ErrorCode = keyof typeof errorKinds;
