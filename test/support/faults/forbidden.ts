import { headers, type MsgHdrs } from "@nats-io/nats-core";

/** What the credentials of the agent `stranger` are tried for, which is no relative of `boss` and `helper`. */

export const TOKEN = "$KV.pawl-tasks.record.token-planted";
export const SECRET = "what only the boss may know";
/** What the bait in the attacker's own bucket and queue says: a token that may do everything. */
export const BAIT = '{"owner":"evil","scopes":["submit","read","operate"],"createdAt":1}';

export const header = (name: string, value: string): MsgHdrs => {
  const all = headers();
  all.set(name, value);
  return all;
};
export const json = (value: object) => JSON.stringify(value);

const last = (subject: string) => json({ last_by_subj: subject });

export const readable: readonly (readonly [string, string, string])[] = [
  ["another agent's document", "STREAM.MSG.GET.KV_pawl_boss", last("$KV.pawl_boss.task.secret")],
  ["another agent's document, by sequence", "STREAM.MSG.GET.KV_pawl_boss", json({ seq: 2 })],
  ["another agent's document, directly", "DIRECT.GET.KV_pawl_boss.$KV.pawl_boss.task.secret", ""],
  ["another agent's queue", "STREAM.MSG.GET.PAWL_boss_0_g1", json({ seq: 1 })],
  [
    "another agent's next message",
    "CONSUMER.MSG.NEXT.PAWL_boss_0_g1.pawl-runner",
    json({ batch: 1, expires: 2e8 }),
  ],
  ["another agent's consumer", "CONSUMER.INFO.PAWL_boss_0_g1.pawl-runner", ""],
  ["a relative's bucket, of others", "STREAM.INFO.KV_pawl_helper", json({ subjects_filter: ">" })],
  ["the quotas", "STREAM.MSG.GET.KV_pawl-tasks", last("$KV.pawl-tasks.record.quotas")],
  ["the reports", "STREAM.MSG.GET.KV_pawl-tasks", last("$KV.pawl-tasks.record.reports")],
  ["the audit trail", "STREAM.MSG.GET.KV_pawl-tasks", last("$KV.pawl-tasks.text.audit-0")],
  ["the tokens", "STREAM.MSG.GET.KV_pawl-tasks", json({ seq: 1, next_by_subj: "$KV.pawl-tasks.record.*" })],
  ["which tokens there are", "STREAM.INFO.KV_pawl-tasks", json({ subjects_filter: ">" })],
  ["which streams there are", "STREAM.NAMES", ""],
  ["all streams", "STREAM.LIST", ""],
  ["all consumers", "CONSUMER.LIST.PAWL_boss_0_g1", ""],
  ["the account", "INFO", ""],
  ["the advisories", "STREAM.MSG.GET.PAWL_advisories", json({ seq: 1 })],
];

const stolen = {
  deliver_subject: TOKEN,
  ack_policy: "none",
  deliver_policy: "all",
  replay_policy: "instant",
};
const consumer = (stream: string) => json({ stream_name: stream, config: { ...stolen, name: "c" } });
const stream = (more: object) =>
  json({
    name: "EVIL",
    subjects: ["evil.>"],
    retention: "limits",
    storage: "memory",
    max_consumers: -1,
    ...more,
  });

export const changed: readonly (readonly [string, string, string])[] = [
  ["purge another's queue", "STREAM.PURGE.PAWL_boss_0_g1", ""],
  ["purge another's documents", "STREAM.PURGE.KV_pawl_boss", ""],
  ["purge its own documents", "STREAM.PURGE.KV_pawl_stranger", ""],
  ["purge the books", "STREAM.PURGE.KV_pawl-tasks", ""],
  ["delete another's queue", "STREAM.DELETE.PAWL_boss_0_g1", ""],
  ["delete its own queue", "STREAM.DELETE.PAWL_stranger_0_g1", ""],
  ["delete the books", "STREAM.DELETE.KV_pawl-tasks", ""],
  ["delete a message of another", "STREAM.MSG.DELETE.PAWL_boss_0_g1", json({ seq: 1 })],
  [
    "alter its own queue",
    "STREAM.UPDATE.PAWL_stranger_0_g1",
    json({ name: "PAWL_stranger_0_g1", subjects: ["pawl.tasks.>"] }),
  ],
  [
    "alter another's queue",
    "STREAM.UPDATE.PAWL_boss_0_g1",
    json({ name: "PAWL_boss_0_g1", subjects: ["evil.>"] }),
  ],
  ["make a stream", "STREAM.CREATE.EVIL", stream({})],
  [
    "make a stream that mirrors the books",
    "STREAM.CREATE.EVIL",
    stream({ subjects: undefined, mirror: { name: "KV_pawl-tasks" } }),
  ],
  ["make a stream of others' sources", "STREAM.CREATE.EVIL", stream({ sources: [{ name: "KV_pawl_boss" }] })],
  ["make a stream that republishes", "STREAM.CREATE.EVIL", stream({ republish: { src: ">", dest: TOKEN } })],
  ["make a consumer of another's documents", "CONSUMER.CREATE.KV_pawl_boss.c", consumer("KV_pawl_boss")],
  [
    "have its own documents delivered as a token",
    "CONSUMER.CREATE.KV_pawl_stranger.c",
    consumer("KV_pawl_stranger"),
  ],
  ["the same of its queue", "CONSUMER.DURABLE.CREATE.PAWL_stranger_0_g1.c", consumer("PAWL_stranger_0_g1")],
  ["delete another's consumer", "CONSUMER.DELETE.PAWL_boss_0_g1.pawl-runner", ""],
  [
    "pause another's consumer",
    "CONSUMER.PAUSE.PAWL_boss_0_g1.pawl-runner",
    json({ pause_until: "2099-01-01T00:00:00Z" }),
  ],
  ["take a snapshot", "STREAM.SNAPSHOT.KV_pawl-tasks", json({ deliver_subject: "evil" })],
  ["depose a leader", "STREAM.LEADER.STEPDOWN.KV_pawl-tasks", ""],
];

export const written: readonly (readonly [string, string, MsgHdrs?])[] = [
  ["a token", TOKEN],
  ["a token under its prefix", `pawl.js.${TOKEN}`],
  ["a token where earlier versions kept them", "$KV.pawl-tasks.part.__tokens__.planted"],
  ["a token there, under its prefix", "pawl.js.$KV.pawl_boss.part.__tokens__.planted"],
  ["a report", "pawl.js.$KV.pawl-tasks.record.reports"],
  ["an entry of the audit trail", "pawl.js.$KV.pawl-tasks.text.audit-0"],
  ["a quota", "pawl.js.$KV.pawl-tasks.record.quotas"],
  ["whose a task is", "pawl.js.$KV.pawl-tasks.where.secret"],
  ["another's document", "$KV.pawl_boss.task.secret"],
  ["another's document, under its prefix", "pawl.js.$KV.pawl_boss.task.secret"],
  ["that another's document is deleted", "pawl.js.$KV.pawl_boss.task.secret", header("KV-Operation", "DEL")],
  ["another's journal", "pawl.js.$KV.pawl_boss.journal.secret"],
  ["another's lease", "pawl.js.$KV.pawl_boss.lease.secret"],
  ["a message for another", "pawl.tasks.boss.0.g1.planted"],
  ["an ack of another's message", "$JS.ACK.PAWL_boss_0_g1.pawl-runner.1.1.1.1.0"],
  ["a roll-up of its own bucket", "pawl.js.$KV.pawl_stranger.task.own", header("Nats-Rollup", "all")],
  ["a key of no kind in its own bucket", "pawl.js.$KV.pawl_stranger.any"],
  [
    "its own document, traced to a token",
    "pawl.js.$KV.pawl_stranger.task.x",
    header("Nats-Trace-Dest", TOKEN),
  ],
  [
    "its own document, scheduled as a token",
    "pawl.js.$KV.pawl_stranger.task.x",
    header("Nats-Schedule-Target", TOKEN),
  ],
];

export const baited: readonly (readonly [string, string, string])[] = [
  ["a document of its own", "pawl.js.STREAM.MSG.GET.KV_pawl_stranger", last("$KV.pawl_stranger.task.bait")],
  [
    "a message of its own",
    "pawl.js.STREAM.MSG.GET.PAWL_stranger_0_g1",
    last("pawl.tasks.stranger.0.g1.bait"),
  ],
  [
    "what it pulls",
    "pawl.js.CONSUMER.MSG.NEXT.PAWL_stranger_0_g1.pawl-runner",
    json({ batch: 5, expires: 2e8 }),
  ],
  ["the answer to a write", "pawl.js.$KV.pawl_stranger.task.x", BAIT],
  ["the answer to a publish", "pawl.tasks.stranger.0.g1.y", BAIT],
  ["what its stream says of itself", "pawl.js.STREAM.INFO.KV_pawl_stranger", ""],
  ["what its consumer says of itself", "pawl.js.CONSUMER.INFO.PAWL_stranger_0_g1.pawl-runner", ""],
  ["the answer to an ack", "$JS.ACK.PAWL_stranger_0_g1.pawl-runner.1.1.1.1.0", "+NXT"],
  ["an answer of its own", "pawl.holders.stranger.t", ""],
  ["what a turn of its own says", "pawl.deltas.stranger.t", json({ token: "t", id: "i" })],
  ["a word that something changed", "pawl.events.stranger.own", ""],
];

export const targets = [
  TOKEN,
  "$KV.pawl_boss.task.secret",
  "pawl.tasks.boss.0.g1.planted",
  "$JS.API.STREAM.PURGE.PAWL_boss_0_g1",
  "_INBOX_pawl_api.x",
];

export const overheard = [
  ">",
  "*.>",
  "_INBOX.>",
  "_INBOX_pawl_api.>",
  "_INBOX_pawl_boss.>",
  "pawl.holders.>",
  "pawl.holders.boss.*",
  "pawl.deltas.>",
  "pawl.deltas.boss.*",
  "pawl.events.>",
  "pawl.tasks.>",
  "$KV.>",
  "$JS.>",
  "_R_.>",
  "$SYS.>",
];
