import { authorErrors } from "./author.ts";
import type { ErrorKind } from "./kind.ts";
import { webErrors } from "./web.ts";

/** The one error family. A code is the anchor of its paragraph in docs/errors.md, which is printed from this table. */
export const errorKinds = {
  ...authorErrors,
  ...webErrors,
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
  bundle_too_large: {
    disposition: "fail",
    meaning: "An agent function's bundle for Workers is over its size limit: a large bundle starts slowly.",
    remedy: "Import less in the agent: the message names what takes most.",
  },
  crash_loop: {
    disposition: "fail",
    meaning: "The process running the task died again and again without finishing it.",
    remedy:
      "Look at the platform's logs for what kills it: memory, time limits, an uncaught exception. Then `pawl dlq redrive` it.",
  },
  deliveries_exhausted: {
    disposition: "fail",
    meaning:
      "JetStream delivered a message as often as its consumer allows (PAWL_MAX_DELIVER), and nobody could decide what to do with it.",
    remedy: "Look at the runners' logs for why: a store that refuses, say. Then `pawl dlq redrive` it.",
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
    meaning: "The store refuses this document every time.",
    remedy: "This is a bug in Pawl: please report the message.",
  },
  document_altered: {
    disposition: "fail",
    meaning:
      "A task's document is not as Pawl wrote it: it was changed, moved or copied by something other than Pawl. Nothing is run or written because of it; a message that carries it is kept as a separate dead letter.",
    remedy:
      "`pawl status <id>` shows it. Find out who wrote it. Restore it from a backup; or, if it is right as it is, seal it again: `pawl accept <id>`.",
  },
  document_too_large: {
    disposition: "fail",
    meaning: "A task's document would pass what the store can hold (1 MiB).",
    remedy: "Keep large values elsewhere and pass a reference.",
  },
  document_unreadable: {
    disposition: "fail",
    meaning: "What the store has under a task's id, or as its journal, is not a document that Pawl can read.",
    remedy:
      "Find out who wrote it. Restore it from a backup, or remove it; the message names the id and what is wrong.",
  },
  journal_altered: {
    disposition: "fail",
    meaning:
      "A task's journal, or a part of it, is not as Pawl wrote it. Its steps and effects can't be trusted, so nothing is run from it.",
    remedy:
      "Find out who wrote it. Restore it from a backup; or, if it is right as it is, seal it again: `pawl accept <id>`. `pawl redrive --from-scratch` runs the task without it.",
  },
  envelope_invalid: {
    disposition: "fail",
    meaning: "A message on a task queue is not a Pawl envelope.",
    remedy:
      "Publish through `pawl submit`, or as docs/lifecycle.md describes. The bytes are in the dead letter.",
  },
  envelope_version: {
    disposition: "fail",
    meaning: "A message's envelope has a version that this runner does not support.",
    remedy: "Deploy runners and publishers of one version. The bytes are in the dead letter.",
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
    meaning: "The input does not match the agent's schema, or no task can have it.",
    remedy: "Correct what the message names.",
  },
  input_too_large: {
    disposition: "fail",
    meaning: "The input is over the size limit.",
    remedy: "Keep large values elsewhere and pass a reference, or raise PAWL_INPUT_LIMIT.",
  },
  lease_lost: {
    disposition: "abandon",
    meaning: "This runner can no longer prove that it holds the task, so it stopped and wrote nothing.",
    remedy:
      "Nothing: the next delivery goes on. If it is frequent, look for frozen processes or a slow store.",
  },
  msg_id_taken: {
    disposition: "fail",
    meaning: "The Msg-Id given by the caller was used for another message inside the duplicate window.",
    remedy: "Use another --msg-id, or leave it out.",
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
  question_moved: {
    disposition: "fail",
    meaning: "The task no longer asks the question that was answered: somebody else answered first.",
    remedy: "Look at the task again, and answer what it asks now.",
  },
  period_expired: {
    disposition: "fail",
    meaning: "The period to look at again is older than the documents that are kept.",
    remedy:
      "Look at a later one: the message says from when. Reports of earlier weeks are kept: `pawl report --week 2026-W46`.",
  },
  redrive_refused: {
    disposition: "fail",
    meaning: "This dead letter is a message that is not a task, so it can't be redriven.",
    remedy: "Read its bytes with `pawl status --json`, and submit the work anew.",
  },
  report_unknown: {
    disposition: "fail",
    meaning: "There is no report of this week or month.",
    remedy: "`pawl reconcile` makes one. The message lists the reports that exist.",
  },
  scope_missing: {
    disposition: "fail",
    meaning: "An API token lacks the scope that a request needs.",
    remedy: "Use a token that has it: `pawl token create --help` lists the scopes.",
  },
  seal_key_unknown: {
    disposition: "fail",
    meaning:
      "A task's document is sealed with a key that this function's PAWL_SEAL_KEY does not have: one of the two has the wrong keys, or somebody forged the document. Its message is put back for a function that has the key, twenty times at most; then it is kept as a separate dead letter, and the document stays as it is.",
    remedy:
      "Give all functions the same PAWL_SEAL_KEY. To change it, first add the new key after the old one everywhere, then put it first everywhere. If no function has the key: `pawl accept <id>` seals the document again, once you know that it is right.",
  },
  server_too_old: {
    disposition: "retry",
    meaning:
      "The nats-server is older than 2.10. Such a server confirms acks before they are on disk, so messages of finished tasks come back after a crash.",
    remedy:
      "Upgrade every nats-server of the cluster to 2.10 or newer. Pawl does not use an older one; work goes on once a newer one is connected.",
  },
  setting_invalid: {
    disposition: "fail",
    meaning: "A setting is missing, malformed, or contradicts another.",
    remedy: "Set what the message names.",
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
      "Check the store. Tasks are held meanwhile and not run; a submit can be repeated with the same --id.",
  },
  stores_differ: {
    disposition: "fail",
    meaning:
      "A stream belongs to a deployment that keeps its documents in another store. Two of them on one namespace would make dead letters of each other's tasks.",
    remedy: "Give one of them another PAWL_NAMESPACE, or correct its PAWL_STORE and GOOGLE_CLOUD_PROJECT.",
  },
  task_id_invalid: {
    disposition: "fail",
    meaning: "The task's id can't be used in a NATS subject or as a document's id.",
    remedy: "Use 1 to 128 of the characters A-Z a-z 0-9 _ - and not __ at both ends.",
  },
  task_unknown: {
    disposition: "fail",
    meaning: "There is no document with this id in this namespace and store.",
    remedy: "Check the id, PAWL_NAMESPACE and PAWL_STORE.",
  },
  unexpected: {
    disposition: "retry",
    meaning: "An error that Pawl did not expect.",
    remedy: "Read the stack. If it is Pawl's own, please report it.",
  },
  usage: {
    disposition: "fail",
    meaning: "A command was called with wrong arguments.",
    remedy: "See the command's --help.",
  },
} as const satisfies Record<string, ErrorKind>;

export type ErrorCode = keyof typeof errorKinds;
