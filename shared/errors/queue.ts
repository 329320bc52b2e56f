import type { ErrorKind } from "./kind.ts";

/** What comes of NATS, its queues and their messages. */
export const queueErrors = {
  agent_mismatch: {
    disposition: "fail",
    status: 500,
    exitCode: 1,
    meaning: "A message on one agent's queue names another agent.",
    remedy:
      "Publish it through `pawl submit`, which chooses the queue. The message is kept in the dead letter.",
  },
  bus_refused: {
    disposition: "retry",
    status: 503,
    exitCode: 1,
    meaning: "NATS refused a request for good: permissions, or a message over its size limit.",
    remedy: "Do what the message says.",
  },
  bus_unavailable: {
    disposition: "retry",
    status: 503,
    exitCode: 1,
    meaning: "NATS did not answer in time, so what was asked of it may or may not have happened.",
    remedy: "Check that NATS_URL is right and the server runs. A submit can be repeated with the same --id.",
  },
  deliveries_exhausted: {
    disposition: "fail",
    status: 500,
    exitCode: 1,
    meaning:
      "JetStream delivered a message as often as its consumer allows (PAWL_MAX_DELIVER), and nobody could decide what to do with it.",
    remedy: "Look at the runners' logs for why: a store that refuses, say. Then `pawl dlq redrive` it.",
  },
  envelope_invalid: {
    disposition: "fail",
    status: 500,
    exitCode: 1,
    meaning: "A message on a task queue is not a Pawl envelope.",
    remedy:
      "Publish through `pawl submit`, or as docs/lifecycle.md describes. The bytes are in the dead letter.",
  },
  envelope_version: {
    disposition: "fail",
    status: 500,
    exitCode: 1,
    meaning: "A message's envelope is of a version that this runner does not speak.",
    remedy: "Deploy runners and publishers of one version. The bytes are in the dead letter.",
  },
  msg_id_taken: {
    disposition: "fail",
    status: 409,
    exitCode: 1,
    meaning: "The Msg-Id given by the caller was used for another message inside the duplicate window.",
    remedy: "Use another --msg-id, or none.",
  },
  queue_drift: {
    disposition: "fail",
    status: 500,
    exitCode: 1,
    meaning: "A stream or consumer differs from its definition in a field that NATS can't change.",
    remedy: "Drain the queue and raise its generation (PAWL_GENERATION), or delete what is in the way.",
  },
  queue_full: {
    disposition: "retry",
    status: 503,
    exitCode: 1,
    meaning:
      "The queue is full, or so nearly that what is left is kept for tasks that were accepted before: a submit was refused, or a message was.",
    remedy:
      "A submit that was refused can be repeated; a task that was accepted is kept and tried again. Run more lanes, or raise PAWL_QUEUE_BYTES and restart a runner.",
  },
  queue_gone: {
    disposition: "retry",
    status: 503,
    exitCode: 1,
    meaning: "A queue's stream or consumer is not there.",
    remedy: "`pawl run <agent>` creates the queues of its agent.",
  },
  queue_missing: {
    disposition: "retry",
    status: 503,
    exitCode: 1,
    meaning: "No stream took the message: there is none for this queue, or its cluster is choosing a leader.",
    remedy: "`pawl run <agent>` creates missing streams. The task stays scheduled.",
  },
  server_too_old: {
    disposition: "retry",
    status: 503,
    exitCode: 1,
    meaning:
      "The nats-server is older than 2.10. Such a server confirms acks before they are on disk, so messages that were done come back after a crash.",
    remedy:
      "Upgrade every nats-server of the cluster to 2.10 or newer. Nothing is asked of an older one; work goes on once a newer one is connected.",
  },
} as const satisfies Record<string, ErrorKind>;
