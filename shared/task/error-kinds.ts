/**
 * The one error family. A code is the anchor of its paragraph in docs/errors.md, which is printed from this table.
 *
 * Disposition says what becomes of a task that meets the error:
 * "retry" tries again later, "fail" is a dead letter, "abandon" leaves the task to whoever holds it now.
 */
export type Disposition = "retry" | "fail" | "abandon";

export interface ErrorKind {
  readonly disposition: Disposition;
  readonly meaning: string;
  readonly remedy: string;
}

export const errorKinds = {
  agent_mismatch: {
    disposition: "fail",
    meaning: "A message on one agent's queue names another agent.",
    remedy:
      "Publish it through `pawl submit`, which chooses the queue. The message is kept in the dead letter.",
  },
  agent_name_invalid: {
    disposition: "fail",
    meaning: "An agent's name can't be part of a stream name and a subject.",
    remedy: "Rename the file in agents/: a letter, then a-z 0-9 - (63 characters at most).",
  },
  agent_invalid: {
    disposition: "fail",
    meaning: "An agent's file does not default-export what `defineAgent` returns, or a field of it is wrong.",
    remedy: "Correct the file and field that the message names.",
  },
  agent_unknown: {
    disposition: "fail",
    meaning: "There is no such file in the agents folder.",
    remedy: "Check the spelling against the names the message lists, or set PAWL_AGENTS_DIR.",
  },
  approval_rejected: {
    disposition: "fail",
    meaning: "A person rejected what the task asked approval for.",
    remedy: "Nothing, if that was meant. A handler may catch it and do something else.",
  },
  approval_timeout: {
    disposition: "fail",
    meaning: "Nobody answered an approval before its timeout.",
    remedy: "Give it a longer timeout, or catch it in the handler and do something else.",
  },
  attempts_exhausted: {
    disposition: "fail",
    meaning: "The handler failed as often as `limits.attempts` allows.",
    remedy: "The last error is in the dead letter. Mend its cause, then submit the work under another id.",
  },
  bus_refused: {
    disposition: "retry",
    meaning:
      "NATS refused a request for good: permissions, a missing stream, or a message over its size limit.",
    remedy: "Do what the message says.",
  },
  bus_unavailable: {
    disposition: "retry",
    meaning: "NATS did not answer in time, so what was asked of it may or may not have happened.",
    remedy: "Check that NATS_URL is right and the server runs. A submit can be repeated with the same --id.",
  },
  budget_exceeded: {
    disposition: "fail",
    meaning: "The next model call could cost more than is left of `limits.budgetUsd`, so it was not made.",
    remedy: "Raise the budget, or ask for less: a smaller maxTokens reserves less. The journal is kept.",
  },
  bundle_too_large: {
    disposition: "fail",
    meaning: "An agent function's bundle for Workers is over its size limit: a large bundle starts slowly.",
    remedy: "Import less in the agent: the message names what takes most.",
  },
  call_invalid: {
    disposition: "fail",
    meaning: "A handler called `step` or `effect` with a wrong name or without a function.",
    remedy: "Correct the call that the message names.",
  },
  child_failed: {
    disposition: "fail",
    meaning: "A child task whose result a handler waited for failed, or was cancelled.",
    remedy: "Read the child with `pawl status`. A handler may catch it and do something else.",
  },
  crash_loop: {
    disposition: "fail",
    meaning: "The process running the task died again and again without finishing it.",
    remedy:
      "Look at the platform's logs for what kills it: memory, time limits, an uncaught exception. Then submit the work under another id.",
  },
  deploy_failed: {
    disposition: "fail",
    meaning: "A program that a deploy runs (wrangler, gcloud) failed.",
    remedy: "Read its output above. Deploying again is safe.",
  },
  deploy_incomplete: {
    disposition: "fail",
    meaning: "Something that a deploy needs is missing: a login, a secret, a program. Nothing was changed.",
    remedy: "Run the commands that the message names, then deploy again.",
  },
  document_missing: {
    disposition: "fail",
    meaning: "A dispatched message's document is gone, so nobody knows what was already done.",
    remedy: "Find out who removed the document. The input is in the dead letter.",
  },
  document_refused: {
    disposition: "fail",
    meaning: "The store does not take this document, whatever is tried.",
    remedy: "This is a bug in Pawl: please report the message.",
  },
  document_too_large: {
    disposition: "fail",
    meaning: "A task's document would pass what the store can hold (1 MiB).",
    remedy: "Keep large values elsewhere and pass a reference.",
  },
  effect_in_doubt: {
    disposition: "fail",
    meaning: "Nobody could tell whether an effect had happened, and a person gave the task up.",
    remedy: "Nothing: `pawl resolve --fail` did this.",
  },
  envelope_invalid: {
    disposition: "fail",
    meaning: "A message on a task queue is not a Pawl envelope.",
    remedy:
      "Publish through `pawl submit`, or as docs/lifecycle.md describes. The bytes are in the dead letter.",
  },
  envelope_version: {
    disposition: "fail",
    meaning: "A message's envelope is of a version that this runner does not speak.",
    remedy: "Deploy runners and publishers of one version. The bytes are in the dead letter.",
  },
  fatal: {
    disposition: "fail",
    meaning: "The handler threw `Fatal`: trying again would not help.",
    remedy: "Read the message, mend its cause, then submit the work under another id.",
  },
  handler_failed: {
    disposition: "retry",
    meaning: "The handler threw.",
    remedy: "It is tried again with growing delays until `limits.attempts` is reached.",
  },
  id_conflict: {
    disposition: "fail",
    meaning: "The id belongs to a task with another agent or input.",
    remedy: "Use another id for other work. For the same work, send the same input.",
  },
  illegal_transition: {
    disposition: "abandon",
    meaning: "A change was asked for that the task's state does not allow.",
    remedy: "Read the task with `pawl status`: somebody else has moved it on.",
  },
  input_invalid: {
    disposition: "fail",
    meaning: "The input is not what the agent's schema, or any task, accepts.",
    remedy: "Correct what the message names.",
  },
  input_too_large: {
    disposition: "fail",
    meaning: "The input is over the size limit.",
    remedy: "Keep large values elsewhere and pass a reference, or raise PAWL_INPUT_LIMIT.",
  },
  journal_full: {
    disposition: "fail",
    meaning: "A task's journal has as many entries as one can have.",
    remedy: "Do more in one step, or split the work into several tasks.",
  },
  journal_mismatch: {
    disposition: "fail",
    meaning:
      "The handler does not make the calls that its task's journal has: it was changed while the task was under way, or is not the same on every run.",
    remedy:
      "Raise the agent's `version` and keep the old calls for tasks of older ones (docs/author.md). In parallel, give each call a name of its own.",
  },
  lease_lost: {
    disposition: "abandon",
    meaning: "This runner can no longer prove that the task is its own, so it stopped and wrote nothing.",
    remedy:
      "Nothing: the next delivery goes on. If it is frequent, look for frozen processes or a slow store.",
  },
  model_context: {
    disposition: "fail",
    meaning: "The conversation is longer than the model's context window.",
    remedy: "Pass less, or split the work into several calls.",
  },
  model_invalid: {
    disposition: "fail",
    meaning: "The model's API refused a request for good: a wrong key, model or parameter.",
    remedy: "Do what the message says. ANTHROPIC_API_KEY is the key.",
  },
  model_refusal: {
    disposition: "fail",
    meaning: "The model refused to answer.",
    remedy: "Read what it was asked. A handler may catch this and do something else.",
  },
  model_truncated: {
    disposition: "fail",
    meaning: "The model's answer reached maxTokens and is not whole.",
    remedy: "Raise maxTokens, or set onMaxTokens to return to take what there is.",
  },
  model_turns: {
    disposition: "fail",
    meaning: "The model asked for tools more often than maxTurns allows.",
    remedy: "Raise maxTurns, or give it a clearer task.",
  },
  model_unavailable: {
    disposition: "retry",
    meaning: "The model's API was overloaded, limited or away for longer than a call waits.",
    remedy: "The task is tried again; its journal keeps what was paid for.",
  },
  msg_id_taken: {
    disposition: "fail",
    meaning: "The Msg-Id given by the caller was used for another message inside the duplicate window.",
    remedy: "Use another --msg-id, or none.",
  },
  price_unknown: {
    disposition: "fail",
    meaning: "An agent with a budget asked for a model whose price is not known.",
    remedy: "Give its price in PAWL_PRICES, or name a model of shared/task/prices.ts.",
  },
  queue_drift: {
    disposition: "fail",
    meaning: "A stream or consumer differs from its definition in a field that NATS can't change.",
    remedy: "Drain the queue and raise its generation (PAWL_GENERATION), or delete what is in the way.",
  },
  queue_missing: {
    disposition: "retry",
    meaning: "No stream took the message: there is none for this queue, or its cluster is choosing a leader.",
    remedy: "`pawl run <agent>` creates missing streams. The task stays scheduled.",
  },
  queue_full: {
    disposition: "retry",
    meaning: "The queue's storage is full, so the message was refused.",
    remedy:
      "The task is kept and tried again. Run more lanes, or raise PAWL_QUEUE_BYTES and restart a runner.",
  },
  result_invalid: {
    disposition: "fail",
    meaning: "The handler, a step or an effect returned something that JSON can't express.",
    remedy: "Return plain data: no functions, cycles, BigInt, NaN, Date, Map or other class instances.",
  },
  result_too_large: {
    disposition: "fail",
    meaning: "The handler's result is over the size limit (PAWL_RESULT_LIMIT).",
    remedy: "Store large results elsewhere and return a reference.",
  },
  setting_invalid: {
    disposition: "fail",
    meaning: "A setting is missing, malformed, or contradicts another.",
    remedy: "Set what the message names.",
  },
  signal_refused: {
    disposition: "fail",
    meaning: "A task has as many signals as its document keeps.",
    remedy: "Send events to a task that consumes them, or fewer of them.",
  },
  step_too_large: {
    disposition: "fail",
    meaning: "The result of a step or effect is over 16 MiB.",
    remedy: "Keep large values elsewhere and return a reference.",
  },
  store_refused: {
    disposition: "fail",
    meaning: "The store refused a request for good: permissions, a wrong project, a missing database.",
    remedy: "Do what the message says.",
  },
  store_unavailable: {
    disposition: "retry",
    meaning: "The store did not answer in time, so a write may or may not have happened.",
    remedy:
      "Check the store. Tasks are held meanwhile, not run blind; a submit can be repeated with the same --id.",
  },
  task_id_invalid: {
    disposition: "fail",
    meaning: "A task's id can't be a subject token and a document id.",
    remedy: "Use 1 to 128 of the characters A-Z a-z 0-9 _ - and not __ at both ends.",
  },
  task_timeout: {
    disposition: "retry",
    meaning: "The handler ran longer than `limits.timeout`.",
    remedy: "Raise the limit, or do less in one task.",
  },
  task_unknown: {
    disposition: "fail",
    meaning: "There is no document with this id in this namespace and store.",
    remedy: "Check the id, PAWL_NAMESPACE and PAWL_STORE.",
  },
  unexpected: {
    disposition: "retry",
    meaning: "Something went wrong that Pawl has no word for.",
    remedy: "Read the stack. If it is Pawl's own, please report it.",
  },
  usage: {
    disposition: "fail",
    meaning: "A command was called with wrong arguments.",
    remedy: "See the command's --help.",
  },
} as const satisfies Record<string, ErrorKind>;

export type ErrorCode = keyof typeof errorKinds;
