import * as z from "zod";
import { states } from "../../task/table.ts";

const state = z.enum(states as [string, ...string[]]);
const count = z.int().min(0);
const millis = z.int().describe("Milliseconds since 1970");

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
  health: z.object({ ok: z.literal(true) }),
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
  operated: z.object({ id: z.string(), state }),
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
      }),
    ),
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
