import { readQuota } from "./quota.ts";
import { duration, integer, type Variable } from "./variable.ts";

/** What keeps agents apart at NATS. */
export const ISOLATIONS = ["shared", "documents", "accounts"] as const;

/** Timing and limits: the numbers that the protocol depends on. */
export const protocolVariables = {
  PAWL_ACK_WAIT: duration(
    "ackWait",
    "30s",
    "How long after its last heartbeat a silent runner's message is given to another. The clock starts at the delivery.",
  ),
  PAWL_DUPLICATE_WINDOW: duration(
    "duplicateWindow",
    "2m",
    "Publishing the same Msg-Id again within this time of the first is dropped by the stream.",
  ),
  PAWL_RETENTION: duration(
    "retention",
    "90d",
    "How long a finished task is kept, with its journal and all else that it owns, and its id is known. The clock starts when it ends.",
  ),
  PAWL_AUDIT_RETENTION: duration(
    "auditRetention",
    "365d",
    "How long an entry of the audit trail is kept, in pages of 50: a page goes when its newest entry is that old. Never shorter than `PAWL_RETENTION`.",
  ),
  PAWL_STOP_GRACE: duration(
    "stopGrace",
    "10s",
    "How long a runner may take to end after SIGTERM. Two thirds of it are the handler's, from the moment its signal aborts.",
  ),
  PAWL_REQUEST_TIMEOUT: duration(
    "requestTimeout",
    "5s",
    "Longest wait for one answer of the store or of NATS; half a lease at most unless it is set.",
  ),
  PAWL_CRASH_LIMIT: integer(
    "crashLimit",
    "5",
    "a whole number",
    "Starts in a row that end without a word before a task is a dead letter.",
  ),
  PAWL_INPUT_LIMIT: integer("inputLimit", "524288", "a number of bytes", "Largest input, as JSON."),
  PAWL_RESULT_LIMIT: integer("resultLimit", "262144", "a number of bytes", "Largest result, as JSON."),
  PAWL_REPLICAS: integer("replicas", "1", "1, 3 or 5", "Copies of each stream. 3 in production."),
  PAWL_QUEUE_BYTES: integer(
    "queueBytes",
    "134217728",
    "a number of bytes, or -1",
    "Most bytes that a queue may hold; -1 for no limit. From four fifths of it on submits are refused; the rest is for the messages of tasks that were accepted. The server sets so much of its storage aside.",
  ),
  PAWL_STORE_BYTES: integer(
    "storeBytes",
    "1073741824",
    "a number of bytes, or -1",
    "Most bytes of a NATS KV bucket when it is made; -1 for no limit. One that is there keeps its own ([operator.md](operator.md#when-the-store-fills-up)). From four fifths of it on submits are refused; the rest is for tasks that were accepted.",
  ),
  PAWL_ISOLATION: {
    sets: "isolation",
    form: `one of ${ISOLATIONS.join(", ")}`,
    meaning:
      "What keeps agents apart at NATS ([deploy.md](deploy.md#an-identity-for-each)). shared: nothing; all use one bucket. documents: with PAWL_STORE=nats-kv each agent has a bucket of its own, of PAWL_STORE_BYTES. accounts: besides, each agent's function connects from an account of its own, as `pawl creds` makes them. The same for every function and command.",
    readBy: ["library"],
    default: "shared",
    read: (value) => ISOLATIONS.find((one) => one === value),
  },
  PAWL_OWNER_QUOTA: {
    sets: "ownerQuota",
    form: "`tasks=1000,bytes=64MB,submits=600,usd=20`, or a part of it",
    meaning:
      "What one owner's tasks may take ([operator.md](operator.md#quotas)). `pawl quota set owner:<name>` says otherwise for one.",
    readBy: ["library"],
    default: "bytes=50%,queue=50%",
    read: readQuota,
  },
  PAWL_AGENT_QUOTA: {
    sets: "agentQuota",
    form: "`tasks=1000,bytes=64MB,submits=600,usd=20`, or a part of it",
    meaning:
      "The same of one agent's tasks, whoever submits them. `pawl quota set agent:<name>` says otherwise for one.",
    readBy: ["library"],
    default: "none",
    read: readQuota,
  },
  PAWL_MAX_DELIVER: integer(
    "maxDeliver",
    "1000",
    "a whole number",
    "Deliveries before JetStream gives up on a message: a last backstop, the document counts what matters.",
  ),
  PAWL_GENERATION: integer(
    "generation",
    "1",
    "a whole number",
    "Part of every stream's name. Raise it to replace streams that can't be changed in place.",
  ),
} as const satisfies Record<string, Variable>;
