/** A field of a stream or a consumer that is not as it should be. */
export interface FieldDifference {
  readonly field: string;
  readonly have: unknown;
  readonly want: unknown;
}

/** When a difference can lose work or do it twice. */
interface Danger {
  readonly when: string;
  /** `there`: the whole definition as it is, `wanted`: as it should be. */
  readonly holds: (difference: FieldDifference, there: Fields, wanted: Fields) => boolean;
}

export type Fields = Readonly<Record<string, unknown>>;

export interface QueueField {
  readonly of: "stream" | "consumer";
  /** What a difference can cost, in one sentence. */
  readonly cost: string;
  readonly danger: Danger;
}

const always: Danger = { when: "always", holds: () => true };
const never: Danger = { when: "never", holds: () => false };
/** Limits of 0 or below are none. More patience than is asked for is another version's choice. */
const less: Danger = {
  when: "when it is less",
  holds: ({ have, want }) => Number(have) > 0 && Number(have) < Number(want),
};
const evicting: Danger = { when: "with discard old", holds: (_, there) => there.discard === "old" };
const hurried: Danger = {
  when: "when a wait is shorter than ack_wait",
  holds: ({ have }, _, wanted) => (have as number[]).some((wait) => wait < Number(wanted.ack_wait)),
};

const stream = (danger: Danger, cost: string): QueueField => ({ of: "stream", danger, cost });
const consumer = (danger: Danger, cost: string): QueueField => ({ of: "consumer", danger, cost });

/**
 * Every field of a queue's definition whose value changes what becomes of tasks, also those that Pawl leaves at the
 * server's default. The report and docs/operator.md are printed from it.
 */
export const queueFields = {
  subjects: stream(always, "Tasks are published past the stream, or what is none is stored in it."),
  retention: stream(
    always,
    "Messages do not leave when they are acked, or leave while nobody has acked them.",
  ),
  storage: stream(always, "A restart of the server takes all waiting tasks' messages with it."),
  max_age: stream(
    always,
    "Messages vanish when they have waited so long: their tasks are dispatched again, or lost if published directly.",
  ),
  max_msgs: stream(
    evicting,
    "No more tasks than that are taken; with discard old the oldest waiting ones are thrown away.",
  ),
  max_bytes: stream(
    evicting,
    "Submits are refused earlier or later than PAWL_QUEUE_BYTES says; with discard old the oldest waiting tasks are thrown away.",
  ),
  max_msgs_per_subject: stream(
    evicting,
    "A task may have several messages; with discard old the newer one throws the older one away.",
  ),
  max_msg_size: stream(never, "Tasks with a larger input are refused."),
  discard: stream(always, "When the queue is full, the oldest waiting tasks are thrown away to make room."),
  discard_new_per_subject: stream(
    always,
    "A second message of a task throws the first one away, also while it is being worked on.",
  ),
  duplicate_window: stream(
    never,
    "A publish that is repeated later than that is stopped by the task's document only.",
  ),
  num_replicas: stream(less, "Fewer servers have a copy: waiting tasks' messages are lost with them."),
  allow_direct: stream(
    never,
    "A copy that lags may answer a look-up: a message is taken for lost, and published twice.",
  ),
  sealed: stream(never, "Nothing is published to it and nothing can be acked: the lane stands still."),
  deny_delete: stream(never, "Messages that are settled can't be removed by repairs."),
  no_ack: stream(never, "No publish is confirmed: no submit learns whether it was taken."),
  allow_rollup_hdrs: stream(never, "A message with a roll-up header removes all others."),
  allow_msg_ttl: stream(never, "A message that is published with a time to live vanishes after it."),
  persist_mode: stream(always, "Messages are confirmed before they are on disk: a crash loses them."),
  mirror: stream(always, "It has what another stream has, and takes no tasks of its own."),
  sources: stream(always, "Messages of other streams are copied into it, and run here too."),
  republish: stream(never, "Every task's message is copied to another subject, with its input."),
  subject_transform: stream(always, "Messages are stored under other subjects: nobody finds their tasks."),
  "pawl-store": stream(
    always,
    "Two deployments share the queue, and each finds messages whose documents are in the other's store.",
  ),
  ack_policy: consumer(always, "Messages count as done before their tasks are: what fails is lost."),
  deliver_policy: consumer(always, "Messages that were there before the consumer are never delivered."),
  replay_policy: consumer(never, "Messages are delivered as slowly as they once came."),
  ack_wait: consumer(
    less,
    "Shorter, a task that is worked on is delivered to a second runner; longer, a dead runner's task waits longer.",
  ),
  max_deliver: consumer(
    less,
    "Fewer, healthy tasks become dead letters; more, a message that nobody can decide comes back for longer.",
  ),
  max_ack_pending: consumer(always, "Several tasks of a lane run at once, and their order is lost."),
  max_waiting: consumer(never, "Fewer runners can wait for messages at once, or more."),
  backoff: consumer(
    hurried,
    "It replaces ack_wait: a task that is worked on is delivered to a second runner.",
  ),
  filter_subject: consumer(always, "Tasks that do not match are never delivered."),
  filter_subjects: consumer(always, "Tasks that do not match are never delivered."),
  inactive_threshold: consumer(
    always,
    "The consumer is removed when nobody pulls for that long, also while a task runs: its runner loses it.",
  ),
  headers_only: consumer(always, "Messages come without their input: their tasks become dead letters."),
  rate_limit_bps: consumer(never, "Messages are delivered more slowly than runners could take them."),
  deliver_subject: consumer(never, "Messages are pushed to a subject: no runner can pull them."),
  max_expires: consumer(never, "Pulls that wait longer are refused: runners may get nothing."),
  priority_groups: consumer(never, "Pulls that name no group are refused: runners get nothing."),
  mem_storage: consumer(
    never,
    "A restart of the server forgets what was delivered: tasks that are worked on are delivered again.",
  ),
} as const satisfies Record<string, QueueField>;

export type QueueFieldName = keyof typeof queueFields;

/** Whether it can lose work or do it twice. */
export function isUnsafe(difference: FieldDifference, there: Fields, wanted: Fields): boolean {
  const field: QueueField | undefined = queueFields[difference.field as QueueFieldName];
  return field?.danger.holds(difference, there, wanted) ?? false;
}
