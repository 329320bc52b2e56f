import type { ErrorKind } from "./kind.ts";

/** What a handler, its calls and its models can meet. */
export const authorErrors = {
  approval_rejected: {
    disposition: "fail",
    status: 500,
    exitCode: 1,
    meaning: "A person rejected what the task asked approval for.",
    remedy:
      "Nothing, if that was meant; else `pawl dlq redrive` asks for the approval again. A handler may catch it and do something else.",
  },
  approval_timeout: {
    disposition: "fail",
    status: 500,
    exitCode: 1,
    meaning: "Nobody answered an approval before its timeout.",
    remedy:
      "`pawl dlq redrive` asks again, with a new deadline. Give it a longer timeout, or catch it in the handler and do something else.",
  },
  attempts_exhausted: {
    disposition: "fail",
    status: 500,
    exitCode: 1,
    meaning: "The handler failed as often as `limits.attempts` allows.",
    remedy: "The last error is in the dead letter. Fix its cause, then `pawl dlq redrive` it.",
  },
  execution_over: {
    disposition: "abandon",
    status: 500,
    exitCode: 1,
    meaning:
      "The reason of an abort signal: the execution that it belonged to has ended, is suspended, or has failed in another call.",
    remedy: "End what still runs. Work that must finish while the task waits belongs in a step.",
  },
  budget_exceeded: {
    disposition: "fail",
    status: 500,
    exitCode: 1,
    meaning: "The next model call could cost more than is left of `limits.budgetUsd`, so it was not made.",
    remedy: "Raise the budget, or ask for less: a smaller maxTokens reserves less. The journal is kept.",
  },
  budget_unbounded: {
    disposition: "fail",
    status: 500,
    exitCode: 1,
    meaning:
      "An agent with `limits.budgetUsd` asked a model for something whose cost nobody can bound beforehand: a container, a tool on the API's side without `max_uses`, another model to fall back to.",
    remedy: "Do what the message says for each, or take the budget away. Nothing was asked.",
  },
  call_invalid: {
    disposition: "fail",
    status: 500,
    exitCode: 1,
    meaning: "A handler called `step` or `effect` with a wrong name or without a function.",
    remedy: "Correct the call that the message names.",
  },
  child_failed: {
    disposition: "fail",
    status: 500,
    exitCode: 1,
    meaning: "A child task whose result a handler waited for failed, or was cancelled.",
    remedy:
      "Read the child with `pawl status`, and redrive it; then `pawl dlq redrive` the parent, which looks at the child again. A handler may catch it and do something else.",
  },
  effect_in_doubt: {
    disposition: "fail",
    status: 500,
    exitCode: 1,
    meaning: "Nobody could tell whether an effect had happened, and a person gave the task up.",
    remedy: "Nothing: `pawl resolve --fail` did this.",
  },
  fatal: {
    disposition: "fail",
    status: 500,
    exitCode: 1,
    meaning: "The handler threw `Fatal`: trying again would not help.",
    remedy: "Read the message, fix its cause, then `pawl dlq redrive` it.",
  },
  handler_failed: {
    disposition: "retry",
    status: 503,
    exitCode: 1,
    meaning: "The handler threw.",
    remedy: "It is tried again with growing delays until `limits.attempts` is reached.",
  },
  journal_full: {
    disposition: "fail",
    status: 500,
    exitCode: 1,
    meaning: "The task's journal has reached the largest number of entries.",
    remedy: "Do more in one step, or split the work into several tasks.",
  },
  journal_mismatch: {
    disposition: "fail",
    status: 500,
    exitCode: 1,
    meaning:
      "The handler's calls differ from those in the task's journal: it was changed while the task was under way, or is not the same on every run.",
    remedy:
      "Raise the agent's `version` and keep the old calls for tasks of older versions (docs/author.md). In parallel, give each call a name of its own.",
  },
  mcp_invalid: {
    disposition: "fail",
    status: 500,
    exitCode: 1,
    meaning:
      "An MCP server refused a session or its list of tools, has not the tools that the agent names, or describes them wrongly.",
    remedy:
      "Read what the message says it has. Correct `url`, `headers` or `tools` of `mcp({…})`, or the server.",
  },
  mcp_unavailable: {
    disposition: "retry",
    status: 503,
    exitCode: 1,
    meaning:
      "An MCP server was away, slow, or cut its answer off. A call that was under way may have been done.",
    remedy:
      "The task is tried again. An effect waits for a person's word in between, unless the server honours keys and the agent says so (`honoursKey`).",
  },
  model_context: {
    disposition: "fail",
    status: 500,
    exitCode: 1,
    meaning: "The conversation is longer than the model's context window.",
    remedy: "Pass less, or split the work into several calls.",
  },
  model_invalid: {
    disposition: "fail",
    status: 500,
    exitCode: 1,
    meaning: "The model's API refused a request for good: a wrong key, model or parameter.",
    remedy: "Do what the message says. ANTHROPIC_API_KEY is the key.",
  },
  model_output: {
    disposition: "fail",
    status: 500,
    exitCode: 1,
    meaning: "None of the model's answers fitted the `output` schema, as often as `outputTries` allows.",
    remedy:
      "Read what the message says was wrong. Say more of the fields in the schema (`describe`), or loosen it; `pawl dlq redrive` asks once more.",
  },
  model_refusal: {
    disposition: "fail",
    status: 500,
    exitCode: 1,
    meaning: "The model refused to answer.",
    remedy: "Read what it was asked. A handler may catch this and do something else.",
  },
  model_stop: {
    disposition: "fail",
    status: 500,
    exitCode: 1,
    meaning:
      "The model stopped for a reason that this version of Pawl does not know, so nobody can say what its answer is worth.",
    remedy: "Leave out the parameter or beta that brings the reason in the message about, or update Pawl.",
  },
  model_truncated: {
    disposition: "fail",
    status: 500,
    exitCode: 1,
    meaning: "The model's answer reached maxTokens and is incomplete.",
    remedy: "Raise maxTokens, or set onMaxTokens to `return` to accept it as it is.",
  },
  model_turns: {
    disposition: "fail",
    status: 500,
    exitCode: 1,
    meaning: "The model asked for tools more often than maxTurns allows.",
    remedy: "Raise maxTurns, or give it a clearer task.",
  },
  model_unavailable: {
    disposition: "retry",
    status: 503,
    exitCode: 1,
    meaning: "The model's API was overloaded, limited or away for longer than a call waits.",
    remedy: "The task is tried again; its journal keeps what was paid for.",
  },
  price_unknown: {
    disposition: "fail",
    status: 500,
    exitCode: 1,
    meaning: "An agent with a budget asked for a model whose price is not known.",
    remedy: "Give its price in PAWL_PRICES, or name a model of shared/journal/prices.ts.",
  },
  replay_differs: {
    disposition: "fail",
    status: 500,
    exitCode: 1,
    meaning:
      "A test replayed journals on today's code, and some tasks would not go on, or would end otherwise.",
    remedy:
      "Where that was not meant, mend the code; where it was, branch on `version` (docs/author.md), allow that kind of difference, or export the journals anew.",
  },
  result_invalid: {
    disposition: "fail",
    status: 500,
    exitCode: 1,
    meaning: "The handler, a step or an effect returned something that JSON can't express.",
    remedy: "Return plain data: no functions, cycles, BigInt, NaN, Date, Map or other class instances.",
  },
  result_too_large: {
    disposition: "fail",
    status: 500,
    exitCode: 1,
    meaning: "The handler's result is over the size limit (PAWL_RESULT_LIMIT).",
    remedy: "Store large results elsewhere and return a reference.",
  },
  signal_refused: {
    disposition: "fail",
    status: 409,
    exitCode: 1,
    meaning: "The task already has the largest number of signals that its document keeps.",
    remedy: "Send events to a task that consumes them, or fewer of them.",
  },
  signal_unasked: {
    disposition: "fail",
    status: 409,
    exitCode: 1,
    meaning: "The task does not wait for an approval or event of this name.",
    remedy:
      'Correct the name. To have it kept for a wait that is still to come, say so: `--early`, or `"early": true`.',
  },
  step_too_large: {
    disposition: "fail",
    status: 500,
    exitCode: 1,
    meaning: "The result of a step or effect is over 16 MiB.",
    remedy: "Keep large values elsewhere and return a reference.",
  },
  task_timeout: {
    disposition: "retry",
    status: 503,
    exitCode: 1,
    meaning: "The handler ran longer than `limits.timeout`.",
    remedy: "Raise the limit, or do less in one task.",
  },
} as const satisfies Record<string, ErrorKind>;
