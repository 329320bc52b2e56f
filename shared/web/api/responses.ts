import * as z from "zod";
import { operations } from "../../audit/entry.ts";
import { states } from "../../task/table.ts";

const state = z.enum(states as [string, ...string[]]);
const count = z.int().min(0);
const millis = z.int().describe("Milliseconds since 1970");

const pause = z
  .object({ at: millis, by: z.string(), why: z.string().optional() })
  .describe("Since when nothing new of it begins, who paused it, and why");

const summary = z.looseObject({
  id: z.string(),
  agent: z.string(),
  state,
  attempts: count,
  createdAt: millis,
  updatedAt: millis,
  usd: z.number().min(0).describe("What its model turns cost"),
  labels: z.record(z.string(), z.string()).optional(),
  error: z.object({ code: z.string(), message: z.string() }).optional(),
});

/** Schemas of the responses. They are in the OpenAPI document only; a test holds the answers of every route against them. */
export const responses = {
  health: z.object({
    ok: z.literal(true),
    store: z
      .object({ bytes: count, limit: count })
      .optional()
      .describe("How full it is, where it has an end; for who sends a token"),
    refusing: z
      .array(z.string())
      .optional()
      .describe(
        "Agents whose queue or bucket is so nearly full that submits are refused; for who sends a token",
      ),
  }),
  submitted: z.object({
    id: z.string(),
    kind: z.enum(["accepted", "already"]),
    state,
    stoppedBy: z.string().optional(),
  }),
  page: z.object({
    tasks: z.array(summary),
    cursor: z.string().optional().describe("Where the next page begins; none after the last"),
  }),
  task: z.looseObject({
    id: z.string(),
    agent: z.string(),
    state,
    input: z.looseObject({}),
    attempts: count,
    createdAt: millis,
    updatedAt: millis,
    history: z.array(z.looseObject({ at: millis, event: z.string(), state })),
  }),
  journal: z.object({
    before: count.describe("How many older entries there are"),
    entries: z.array(
      z.looseObject({
        n: z.int().min(1),
        kind: z.enum(["step", "intent", "receipt", "undone", "unsure", "redriven"]),
        key: z.string(),
        when: millis.optional(),
        took: z.number().optional().describe("Milliseconds that a step took"),
        asked: z
          .object({ text: z.string().optional(), bytes: count.optional() })
          .optional()
          .describe("What a model or a tool was given; bytes of the whole where the text is cut or not kept"),
      }),
    ),
  }),
  logs: z.object({
    count: count.describe("How many lines there have been"),
    lines: z.array(
      z.object({ at: millis, fence: count, level: z.enum(["info", "warn", "error"]), text: z.string() }),
    ),
  }),
  operated: z.object({ id: z.string(), state }),
  several: z.object({
    count: count.describe("How many it was done to; of a dry run, how many it would be done to"),
    ids: z.array(z.string()).describe("Which; of a dry run the first ten"),
    skipped: z
      .array(z.object({ id: z.string(), code: z.string(), detail: z.string() }))
      .describe("Those that could not be, and why"),
    until: millis.describe("What changed after that is left alone. Milliseconds since 1970"),
    cursor: z.string().optional().describe("Where the next slice begins; none after the last"),
  }),
  paused: z.object({
    agent: z.string(),
    paused: pause.optional(),
    before: pause.optional().describe("How it was: a second pause changes nothing"),
  }),
  agents: z.object({
    agents: z.array(
      z.object({
        name: z.string(),
        lanes: z.int().min(1),
        pending: count,
        inFlight: count,
        redelivered: count,
        oldestAge: z.number().min(0).describe("Milliseconds"),
        left: z
          .array(z.object({ stream: z.string(), lane: count, generation: count, messages: count }))
          .describe("Queues that get no more messages and still hold some"),
        paused: pause.optional(),
        inputSchema: z
          .looseObject({})
          .optional()
          .describe("What its input must be, as JSON Schema, as far as that can say it"),
      }),
    ),
  }),
  audit: z.object({
    entries: z.array(
      z.object({
        n: z.int().min(1).describe("1, 2, 3, without a gap"),
        at: millis,
        actor: z.object({
          name: z.string(),
          token: z.string().optional(),
          via: z.enum(["api", "dashboard", "cli"]),
        }),
        op: z.enum(operations),
        task: z.string().optional(),
        agent: z.string().optional(),
        token: z.string().optional().describe("The id of the token that was made or revoked"),
        detail: z.string().optional(),
        outcome: z.enum(["asked", "done", "refused", "unknown"]),
        code: z.string().optional(),
        of: z.int().min(1).optional().describe("The entry that this one is the outcome of"),
        stamp: z.string(),
        seal: z.string(),
      }),
    ),
    cursor: z.string().optional().describe("Where the next page begins; none after the last"),
  }),
  openApi: z.looseObject({ openapi: z.literal("3.1.0"), paths: z.looseObject({}) }),
};

/** RFC 9457. */
export const problemDetails = z.looseObject({
  type: z.string(),
  status: z.int(),
  code: z.string().describe("One of docs/errors.md, or of the few that docs/api.md adds"),
  detail: z.string(),
});
