import { describe, expect, expectTypeOf, test } from "vitest";
import * as z from "zod";
import { defineAgent, type Json, type JsonObject } from "../../shared/agent.ts";
import type {
  AgentStatus,
  AuditEntry,
  Client,
  Health,
  JournalEntry,
  Logs,
  Operated,
  Pause,
  PauseChange,
  Several,
  State,
  SubmitOptions,
  Task,
  TaskHandle,
  TaskSummary,
} from "../../shared/client.ts";
import type { Entry } from "../../shared/journal/entries.ts";
import type * as documents from "../../shared/task/document.ts";
import type { responses } from "../../shared/web/api/responses.ts";
import type { bodies, queries } from "../../shared/web/api/schemas.ts";

const summary = defineAgent({
  input: z.object({ urls: z.array(z.url()).min(1), words: z.coerce.number().default(100) }),
  run: ({ input }) => ({ summary: input.urls.join(), words: input.words }),
});
const silent = defineAgent({ run: async () => {} });
/** Of another copy of Pawl, whose types are not these. */
const foreign = {
  kind: "pawl.agent" as const,
  input: z.object({ n: z.number() }),
  run: async (_: { readonly submit: "otherwise" }) => 7,
};
/** As authors export them; beside others of the same module. */
const agents = { summary, "release-notes": silent, foreign, version: 3 };

declare const pawl: Client<typeof agents>;
declare const untyped: Client;
/** Never called: these are the compiler's. */
const typed = {
  summary: async () => (await pawl.submit("summary", { urls: [], words: "7" })).result(),
  silent: async () => (await pawl.submit("release-notes", { anything: 1 })).result(),
  foreign: async () => (await pawl.submit("foreign", { n: 1 })).result(),
  byId: () => pawl.task<"summary">("id").result(),
  handle: () => pawl.task("id"),
  unknown: () => pawl.task("id").result(),
  untyped: async () => (await untyped.submit("any", { n: 1 })).result(),
  completed: async () => {
    const task = await pawl.task<"summary">("id").get();
    return task.state === "completed" ? task.result : undefined;
  },
  // @ts-expect-error: urls is missing
  missing: () => pawl.submit("summary", {}),
  // @ts-expect-error: n is a number
  wrongForeign: () => pawl.submit("foreign", { n: "1" }),
  // @ts-expect-error: urls are texts
  wrong: () => pawl.submit("summary", { urls: [7] }),
  // @ts-expect-error: there is no such agent
  none: () => pawl.submit("summery", { urls: [] }),
  // @ts-expect-error: that is no agent
  another: () => pawl.submit("version", {}),
  // @ts-expect-error: a date is no JSON
  noJson: () => untyped.submit("any", { at: new Date() }),
  // @ts-expect-error: a task that is not over has no result
  early: async () => (await untyped.task("id").get()).result,
  // @ts-expect-error: one or the other
  both: () => untyped.task("id").resolve({ happened: false, receipt: 1 }),
};

test("inputs and results have the types of the agents, by name", () => {
  interface Summary {
    summary: string;
    words: number;
  }
  expectTypeOf(typed.summary).returns.resolves.toEqualTypeOf<Summary>();
  expectTypeOf(typed.byId).returns.resolves.toEqualTypeOf<Summary>();
  expectTypeOf(typed.completed).returns.resolves.toEqualTypeOf<Summary | undefined>();
  expectTypeOf(typed.silent).returns.resolves.toEqualTypeOf<null>();
  expectTypeOf(typed.foreign).returns.resolves.toEqualTypeOf<number>();
  expectTypeOf(typed.unknown).returns.resolves.toEqualTypeOf<Json>();
  expectTypeOf(typed.handle).returns.toEqualTypeOf<TaskHandle<Json>>();
  expectTypeOf(typed.untyped).returns.resolves.toEqualTypeOf<Json>();
  expectTypeOf<Parameters<typeof untyped.submit>[1]>().toEqualTypeOf<JsonObject>();
  expectTypeOf<Parameters<typeof pawl.submit>[0]>().toEqualTypeOf<"summary" | "release-notes" | "foreign">();
  expect(Object.keys(typed)).toHaveLength(16);
});

/** Fields that are named, without "and any others". */
type Named<T> = T extends readonly (infer One)[]
  ? readonly Named<One>[]
  : T extends object
    ? { readonly [K in keyof T as string extends K ? never : K]: Named<T[K]> }
    : T;
/** All fields but some: JSON knows no difference between one that is undefined and one that is not there. */
type Whole<T, Left extends keyof T = never> = { [K in Exclude<keyof T, Left>]-?: Exclude<T[K], undefined> };
type Response<Name extends keyof typeof responses> = Named<z.infer<(typeof responses)[Name]>>;

describe("what the client's types say is what the API's schemas say", () => {
  test("of requests", () => {
    type Body = z.input<typeof bodies.submit>;
    type Sent = Omit<SubmitOptions, "key" | "signal" | "at"> & {
      agent: string;
      input: JsonObject;
      at?: string;
    };
    // Optional there may also be undefined, which JSON leaves out.
    expectTypeOf<Sent>().toExtend<Body>();
    expectTypeOf<keyof Sent>().toEqualTypeOf<keyof Body>();
    type Filter = Parameters<Client["tasks"]>[0] & object;
    type Query = z.input<typeof queries.list>;
    expectTypeOf<Exclude<keyof Filter, "pageSize" | "signal">>().toEqualTypeOf<
      Exclude<keyof Query, "limit" | "cursor">
    >();
    type CancelAll = Parameters<Client["cancelAll"]>[0];
    type CancelBody = z.input<typeof bodies.cancelSeveral>;
    // The client turns the pages itself.
    expectTypeOf<Omit<CancelAll, "signal">>().toExtend<CancelBody>();
    expectTypeOf<Exclude<keyof CancelAll, "signal">>().toEqualTypeOf<
      Exclude<keyof CancelBody, "limit" | "cursor">
    >();
    type RedriveAll = Parameters<Client["redriveAll"]>[0];
    expectTypeOf<Exclude<keyof RedriveAll, "signal">>().toEqualTypeOf<
      Exclude<keyof z.input<typeof bodies.redriveSeveral>, "limit" | "cursor">
    >();
    type Trail = Parameters<Client["audit"]>[0] & object;
    expectTypeOf<Exclude<keyof Trail, "pageSize" | "signal">>().toEqualTypeOf<
      Exclude<keyof z.input<typeof queries.audit>, "limit" | "cursor">
    >();
    type Answer = Parameters<TaskHandle["approve"]>[1] & object;
    expectTypeOf<Omit<Answer, "signal"> & { approved: boolean }>().toExtend<
      z.input<typeof bodies.approval>
    >();
    type Resolve = Parameters<TaskHandle["resolve"]>;
    expectTypeOf<Resolve[0] & Omit<Resolve[1] & object, "signal">>().toExtend<
      z.input<typeof bodies.resolve>
    >();
  });

  test("of answers", () => {
    expectTypeOf<State>().toEqualTypeOf<documents.State>();
    type Page = Response<"page">["tasks"][number];
    expectTypeOf<Whole<TaskSummary, "state" | "labels">>().toEqualTypeOf<Whole<Page, "state" | "labels">>();
    expectTypeOf<keyof TaskSummary>().toEqualTypeOf<keyof Page>();
    type Status = Response<"agents">["agents"][number];
    expectTypeOf<Whole<AgentStatus, "inputSchema" | "paused">>().toEqualTypeOf<
      Whole<Status, "inputSchema" | "left" | "paused">
    >();
    expectTypeOf<Whole<Pause>>().toEqualTypeOf<Whole<Status["paused"] & object>>();
    expectTypeOf<keyof PauseChange>().toEqualTypeOf<keyof Response<"paused">>();
    expectTypeOf<Whole<Health>>().toEqualTypeOf<Whole<Response<"health">>>();
    expectTypeOf<keyof Logs>().toEqualTypeOf<keyof Response<"logs">>();
    expectTypeOf<Logs["lines"][number]>().toEqualTypeOf<Response<"logs">["lines"][number]>();
    expectTypeOf<keyof Operated>().toEqualTypeOf<keyof Response<"operated">>();
    type SliceOf = Response<"several">;
    expectTypeOf<Whole<Several>>().toEqualTypeOf<Whole<SliceOf, "cursor">>();
    type Trailed = Response<"audit">["entries"][number];
    expectTypeOf<Whole<AuditEntry, "op" | "actor">>().toEqualTypeOf<
      Whole<Trailed, "op" | "actor" | "stamp" | "seal">
    >();
  });

  test("of tasks and their journals, as they are stored", () => {
    // The API answers with the whole document: whatever state it is in, it has what the client's type says.
    expectTypeOf<documents.Task>().toExtend<Task>();
    expectTypeOf<Entry["kind"]>().toEqualTypeOf<JournalEntry["kind"]>();
    expectTypeOf<Entry & { n: number }>().toExtend<JournalEntry>();
  });
});
