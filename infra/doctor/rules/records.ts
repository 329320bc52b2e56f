import { type Contract, isUnlimited, ms, span, waitsOf } from "../contract.ts";
import type { Rule } from "../rule.ts";

const DEFAULT_WINDOW = 120_000;
const DAY = 86_400_000;

/** How long the server knows a Msg-Id, in milliseconds; undefined where nothing is known of the stream. */
const windowOf = ({ stream }: Contract): number | undefined =>
  stream && (stream.duplicate_window ? ms(stream.duplicate_window) : DEFAULT_WINDOW);

/** By what a repeat is known: the record of finished work, Msg-Ids, attempts. */
export const recordRules = {
  "ack-wait-outlives-record": {
    checks: "ack_wait, as it holds, against the life of the record of finished work",
    prevents:
      "Work is done, its consumer dies before the ack, the message comes again after ack_wait: without the record it is done twice.",
    severity: "error",
    mend: "Keep the record longer than any redelivery can take.",
    find: ({ consumer, application: { record_ttl } }) => {
      if (!consumer || !record_ttl) return undefined;
      const { first } = waitsOf(consumer);
      if (first <= record_ttl) return undefined;
      return {
        field: "application.record_ttl",
        is: `the record lives for ${span(record_ttl)}, and a message comes again after ${span(first)}`,
        set: `record_ttl: more than ${span(first)}`,
      };
    },
  },
  "redelivery-outlives-record": {
    checks: "all deliveries of a message together (its redelivery horizon) against the life of the record",
    prevents:
      "The last redeliveries of a message whose ack was lost find no record: finished work is done again.",
    severity: "error",
    mend: "Keep the record longer than max_deliver × ack_wait, or than the times of the backoff together; or let max_deliver be smaller.",
    find: ({ consumer, application: { record_ttl } }) => {
      if (!consumer || !record_ttl || record_ttl === Number.POSITIVE_INFINITY) return undefined;
      const { total } = waitsOf(consumer);
      if (total <= record_ttl) return undefined;
      const often = isUnlimited(consumer.max_deliver) ? "without an end" : `${consumer.max_deliver} times`;
      return {
        field: "application.record_ttl",
        is: `the record lives for ${span(record_ttl)}, and a message is delivered ${often}, over ${total === Number.POSITIVE_INFINITY ? "any time" : span(total)}`,
        set:
          total === Number.POSITIVE_INFINITY
            ? "record_ttl: forever; or a max_deliver"
            : `record_ttl: more than ${span(total)}`,
      };
    },
  },
  "max-age-outlives-record": {
    checks: "max_age against the life of the record",
    prevents:
      "A message whose ack was lost lies in the stream while nobody pulls, and is delivered when its record is gone: finished work is done again.",
    severity: "error",
    mend: "Keep the record longer than the stream keeps a message.",
    find: ({ stream, application: { record_ttl } }) => {
      if (!stream?.max_age || !record_ttl || ms(stream.max_age) <= record_ttl) return undefined;
      return {
        field: "application.record_ttl",
        is: `the record lives for ${span(record_ttl)}, and a message for ${span(ms(stream.max_age))}`,
        set: `record_ttl: ${span(ms(stream.max_age) + DAY)}`,
      };
    },
  },
  "record-does-not-follow": {
    checks: "an ack_wait that a deployment can change, beside a record whose life is fixed",
    prevents:
      "Somebody raises ack_wait above the record's life: what is redelivered after a crash is done twice.",
    severity: "warning",
    mend: "Compute the record's life from the ack_wait in force, and refuse to start where it is shorter.",
    find: ({ application: { ack_wait_from_env, record_follows_ack_wait, record_ttl } }) =>
      ack_wait_from_env && !record_follows_ack_wait && record_ttl && record_ttl !== Number.POSITIVE_INFINITY
        ? {
            field: "application.record_ttl",
            is: `ack_wait can be set by the environment, and the record lives for ${span(record_ttl)} in any case`,
            set: "record_follows_ack_wait: true, by computing one from the other",
          }
        : undefined,
  },
  "no-record": {
    checks: "whether finished work is recorded at all",
    prevents:
      "A message whose ack was lost is done again. The duplicate window stops repeated publishes, not redeliveries; and a server that restarts forgets the ids of acked messages.",
    severity: "error",
    mend: "Write a record of the result before the ack, and ask for it before the work.",
    find: ({ application: { record_ttl } }) =>
      record_ttl === 0
        ? {
            field: "application.record_ttl",
            is: "record_ttl is none: nothing is recorded",
            set: "record_ttl: 7d",
          }
        : undefined,
  },
  "window-shorter-than-retries": {
    checks: "duplicate_window against how long publishers try again under one Msg-Id",
    prevents:
      "A publish whose answer was lost, and that is tried again after the window, is stored twice: the work is done twice, unless its record outlives the retries.",
    severity: "error",
    mend: "Make the window longer than the retries, or the retries shorter.",
    find: (contract) => {
      const { publish_retry, record_ttl = 0 } = contract.application;
      const window = windowOf(contract);
      if (window === undefined || !publish_retry || publish_retry < window) return undefined;
      const isRecorded = record_ttl > publish_retry;
      return {
        field: "stream.duplicate_window",
        is: `a publish may be repeated for ${span(publish_retry)}, and its id is known for ${span(window)}${isRecorded ? ": only the record stops the rest" : ""}`,
        set: `duplicate_window: more than ${span(publish_retry)}`,
        ...(isRecorded && { severity: "warning" as const }),
      };
    },
  },
  "window-over-max-age": {
    checks: "duplicate_window against max_age",
    prevents: "The server refuses the stream (10052): an id can't be known longer than messages are kept.",
    severity: "error",
    mend: "Make the window at most as long as max_age; a work queue has no max_age at all.",
    find: ({ stream }) => {
      const { duplicate_window = 0, max_age = 0 } = stream ?? {};
      if (max_age <= 0 || duplicate_window <= max_age) return undefined;
      return {
        field: "stream.duplicate_window",
        is: `duplicate_window is ${span(ms(duplicate_window))}, and max_age ${span(ms(max_age))}`,
        set: `duplicate_window: ${span(ms(max_age))} at most`,
        refused: 10052,
      };
    },
  },
  "redrive-swallowed": {
    checks: "the Msg-Id of a message that is published again on purpose, against duplicate_window",
    prevents:
      "The id is known though its message was acked and is gone: the stream drops the redrive, and says that it has it.",
    severity: "error",
    mend: "Give each redrive an id of its own, such as redrive:<id>:2.",
    find: (contract) => {
      const window = windowOf(contract);
      if (contract.application.redrive_id !== "same" || window === undefined) return undefined;
      return {
        field: "application.redrive_id",
        is: `a redrive has the first publish's Msg-Id, which is known for ${span(window)}`,
        set: "redrive_id: new",
      };
    },
  },
  "lost-before-redelivered": {
    checks: "when a task that nobody began is taken for lost, against the first redelivery",
    prevents:
      "A task whose consumer crashed is declared lost, or dispatched again, while its own message still waits to come again.",
    severity: "error",
    mend: "Let the dispatcher wait longer than ack_wait, and look whether the message is there.",
    find: ({ consumer, application: { dispatch_timeout } }) => {
      if (!consumer || !dispatch_timeout) return undefined;
      const { first } = waitsOf(consumer);
      if (dispatch_timeout > first) return undefined;
      return {
        field: "application.dispatch_timeout",
        is: `a task is taken for lost after ${span(dispatch_timeout)}, and its message comes again after ${span(first)}`,
        set: `dispatch_timeout: more than ${span(first)}`,
      };
    },
  },
  "rolled-back-unknown": {
    checks: "what becomes of a publish without an answer",
    prevents: "It may be stored all the same: taken back and dispatched again, the task has two messages.",
    severity: "error",
    mend: "Try again under the same Msg-Id until there is an answer; take back only what the server certainly refused.",
    find: ({ application: { rolls_back } }) =>
      rolls_back === "always"
        ? {
            field: "application.rolls_back",
            is: "rolls_back is always, also where nobody knows whether the publish was stored",
            set: "rolls_back: when_definite",
          }
        : undefined,
  },
  "attempts-counted-twice": {
    checks: "how many attempts one failure is counted as",
    prevents: "A task gives up after half of the attempts that it was given.",
    severity: "warning",
    mend: "Count a failure once: where the handler failed, not where it was dispatched.",
    find: ({ application: { attempts_per_failure = 1 } }) =>
      attempts_per_failure > 1
        ? {
            field: "application.attempts_per_failure",
            is: `one failure is counted as ${attempts_per_failure} attempts`,
            set: "attempts_per_failure: 1",
          }
        : undefined,
  },
} as const satisfies Record<string, Rule<Contract>>;
