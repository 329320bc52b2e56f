import type { ErrorKind } from "./kind.ts";

/** What comes of the store, and of what it keeps: documents, journals, reports. */
export const storeErrors = {
  audit_unreadable: {
    disposition: "fail",
    status: 500,
    exitCode: 1,
    meaning:
      "The record that holds the newest page of the audit trail is no page of Pawl's, so nothing that people ask for can be written down, and nothing of it is done.",
    remedy:
      "Find out who wrote it. Restore the record `audit` from a backup; or, once you have kept a copy of it and of the texts `audit-…`, remove it, and a new trail begins.",
  },
  document_altered: {
    disposition: "fail",
    status: 500,
    exitCode: 1,
    meaning:
      "A task's document is not as Pawl wrote it: it was changed, moved or copied by another hand. Nothing is run or written on its word; a message that carries it is kept as a dead letter of its own.",
    remedy:
      "`pawl status <id>` shows it. Find out who wrote it. Restore it from a backup; or, if it is right as it is, seal it anew: `pawl accept <id>`.",
  },
  document_missing: {
    disposition: "fail",
    status: 500,
    exitCode: 1,
    meaning: "A dispatched message's document is gone, so nobody knows what was already done.",
    remedy: "Find out who removed the document. The input is in the dead letter.",
  },
  document_refused: {
    disposition: "fail",
    status: 500,
    exitCode: 1,
    meaning: "The store does not take this document, whatever is tried.",
    remedy: "This is a bug in Pawl: please report the message.",
  },
  document_too_large: {
    disposition: "fail",
    status: 500,
    exitCode: 1,
    meaning: "A task's document would pass what the store can hold (1 MiB).",
    remedy: "Keep large values elsewhere and pass a reference.",
  },
  document_unreadable: {
    disposition: "fail",
    status: 500,
    exitCode: 1,
    meaning: "What the store has under a task's id, or as its journal, is no document of Pawl's.",
    remedy:
      "Find out who wrote it. Restore it from a backup, or remove it; the message names the id and what is wrong.",
  },
  journal_altered: {
    disposition: "fail",
    status: 500,
    exitCode: 1,
    meaning:
      "A task's journal, or a part of it, is not as Pawl wrote it. Its steps and effects can't be told from made-up ones, so nothing is run on its word.",
    remedy:
      "Find out who wrote it. Restore it from a backup; or, if it is right as it is, seal it anew: `pawl accept <id>`. `pawl dlq redrive <id> --from-scratch` runs the task without it.",
  },
  period_expired: {
    disposition: "fail",
    status: 500,
    exitCode: 1,
    meaning: "A period that should be looked at again is older than the documents that are kept.",
    remedy:
      "Look at a later one: the message says from when. Reports of earlier weeks are kept: `pawl report --week 2026-W46`.",
  },
  report_unknown: {
    disposition: "fail",
    status: 404,
    exitCode: 1,
    meaning: "There is no report of this week or month.",
    remedy: "`pawl reconcile` makes one. The message lists those that there are.",
  },
  seal_key_unknown: {
    disposition: "fail",
    status: 500,
    exitCode: 1,
    meaning:
      "A task's document is sealed with a key that this function's PAWL_SEAL_KEY does not have: one of the two has the wrong keys, or somebody made the document up. Its message is put back for a function that has the key, twenty times at most; then it is kept as a dead letter of its own, and the document stays as it is.",
    remedy:
      "Give all functions the same PAWL_SEAL_KEY. To change it, first add the new key after the old one everywhere, then put it first everywhere. If no function has the key: `pawl accept <id>` seals the document anew, once you know that it is right.",
  },
  store_full: {
    disposition: "retry",
    status: 503,
    exitCode: 1,
    meaning:
      "The store is so nearly full that what is left is kept for tasks that were accepted before: a submit was refused, and nothing of it was stored.",
    remedy:
      "Raise the bucket's limit (`nats stream edit KV_<namespace>-tasks --max-bytes=…`), or have finished tasks removed sooner (PAWL_RETENTION). Then submit it again.",
  },
  store_refused: {
    disposition: "fail",
    status: 500,
    exitCode: 1,
    meaning: "The store refused a request for good: permissions, a wrong project, a missing database.",
    remedy: "Do what the message says.",
  },
  store_unavailable: {
    disposition: "retry",
    status: 503,
    exitCode: 1,
    meaning: "The store did not answer in time, so a write may or may not have happened.",
    remedy:
      "Check the store. Tasks are held meanwhile, not run blind; a submit can be repeated with the same --id.",
  },
  stores_differ: {
    disposition: "fail",
    status: 500,
    exitCode: 1,
    meaning:
      "A stream belongs to a deployment that keeps its documents in another store. Two of them on one namespace would make dead letters of each other's tasks.",
    remedy: "Give one of them another PAWL_NAMESPACE, or correct its PAWL_STORE and GOOGLE_CLOUD_PROJECT.",
  },
} as const satisfies Record<string, ErrorKind>;
