import * as z from "zod";
import { operations } from "../../audit/entry.ts";
import { WHY_LIMIT } from "../../pause/pause.ts";
import { LABEL_LIMIT, MOST_LABELS } from "../../task/envelope.ts";
import { isEventName } from "../../task/signals.ts";
import { states } from "../../task/table.ts";

const label = z.string().max(LABEL_LIMIT);
/** Ids in the forms that Pawl generates (for keys, children, schedules and strays) are refused: they would be taken from others. */
const taskId = z.string().regex(/^(?!__.*__$)(?!k-|c-|cron-|stray-)[A-Za-z0-9_-]{1,128}$/);
const name = z.string().min(1).max(200);
/** Any JSON: what was parsed is nothing else, and to look at each value of half a megabyte again would take as long. */
const json = z.unknown();
/** With its offset, a time of the year 9999 may lie in 10000, which Firestore can't store. */
const isStorable = (time: string) => Date.parse(time) <= Date.UTC(9999, 11, 31, 23, 59, 59, 999);

export const approvalName = name;
export const agentName = z.string().max(63);

/** Which effect is meant: if another one is in doubt by now, nothing is done. */
const effect = z.string().max(200).optional();

/** Keeps an answer or event that the task does not wait for yet; without it, such a name is taken for a mistake. */
const early = z.boolean().optional();

/** What no store can look for: the newest tasks are read, and these are picked from them. */
const narrower = {
  owner: z.string().max(128).optional(),
  /** A dead letter's code. */
  error: z.string().max(100).optional(),
  /** A label and its value, "team=docs", or a label with any value. */
  label: z
    .string()
    .max(2 * LABEL_LIMIT + 1)
    .optional(),
};

/** A place in each agent's bucket, where each has one. */
const CURSOR = 8_000;

const cursor = z.string().max(CURSOR).optional();

/** Which tasks: what their list can be asked for. */
const agent = z.string().max(63).optional();
const deadLetters = { agent, ...narrower };
const tasks = { agent, state: z.enum(states as [string, ...string[]]).optional(), ...narrower };

/** Of a change of all that match. That nothing was said of which is no mistake only where "all" says so too. */
function severalOf<Filter extends typeof deadLetters>(filter: Filter) {
  const naming = [...Object.keys(filter), "all"];
  return z
    .strictObject({
      ...filter,
      all: z.literal(true).optional(),
      dryRun: z.boolean().optional(),
      until: z.int().min(0).optional(),
      cursor,
      limit: z.int().min(1).max(50).optional(),
    })
    .refine(
      (body) => naming.some((name) => Object.hasOwn(body, name)),
      `Say which: one of ${naming.slice(0, -1).join(", ")}, or "all": true`,
    )
    .meta({ anyOf: naming.map((name) => ({ required: [name] })) });
}

/** What requests may say. The OpenAPI document is made from these too. */
export const bodies = {
  submit: z.strictObject({
    agent: z.string().max(63),
    input: z.record(z.string(), json).describe("As the agent's inputSchema of /v1/agents says"),
    id: taskId.optional(),
    at: z.iso.datetime({ offset: true }).refine(isStorable, "after the year 9999").optional(),
    orderingKey: label.optional(),
    /** Instead of `submit:<id>`: for a controlled second submit that is to be the same operation. */
    msgId: z
      .string()
      .regex(/^[\x21-\x7e]{1,60}$/)
      .optional(),
    labels: z
      .record(label, label)
      .refine((labels) => Object.keys(labels).length <= MOST_LABELS, `at most ${MOST_LABELS} labels`)
      .meta({ maxProperties: MOST_LABELS })
      .optional(),
  }),
  cancel: z.strictObject({}),
  cancelSeveral: severalOf(tasks),
  redriveSeveral: severalOf(deadLetters),
  redrive: z.union([
    z.strictObject({ fromScratch: z.boolean().optional() }),
    z.strictObject({ from: z.string().min(1).max(200) }),
  ]),
  resolve: z.union([
    z.strictObject({ happened: z.literal(true), receipt: json.optional(), effect }),
    z.strictObject({ happened: z.literal(false), effect }),
    z.strictObject({ fail: z.literal(true), effect }),
  ]),
  signal: z.strictObject({
    name: name
      .refine(isEventName, "reserved: use the requests for approvals and resolving")
      .meta({ pattern: "^(?!approval:|child:|effect )" }),
    value: json.optional(),
    early,
  }),
  pause: z.strictObject({ why: z.string().max(WHY_LIMIT).optional() }),
  resume: z.strictObject({}),
  approval: z.strictObject({ approved: z.boolean(), note: z.string().max(2_000).optional(), early }),
};

const limit = z.coerce.number().int().min(1).max(200).optional();
const moment = z.iso.datetime({ offset: true }).optional();

export const queries = {
  audit: z.strictObject({
    since: moment,
    until: moment,
    actor: z.string().max(128).optional(),
    task: z.string().max(128).optional(),
    op: z.enum(operations).optional(),
    cursor: z
      .string()
      .regex(/^[1-9]\d{0,14}$/)
      .optional(),
    limit,
  }),
  list: z.strictObject({ ...tasks, cursor, limit }),
  deadLetters: z.strictObject({ ...deadLetters, cursor, limit }),
  events: z.strictObject({ deltas: z.enum(["true", "false"]).optional() }),
};
