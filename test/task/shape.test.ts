import { expect, test } from "vitest";
import { Unreadable } from "../../shared/errors/errors.ts";
import { type Entry, emptyHead, extended } from "../../shared/journal/entries.ts";
import { adopted, deadLetter, scheduled, submitted } from "../../shared/task/create.ts";
import type { Task } from "../../shared/task/document.ts";
import { readHead, readTask } from "../../shared/task/shape.ts";
import { states } from "../../shared/task/table.ts";
import { apply } from "../../shared/task/transitions.ts";

const mark = () => ({ now: 1_000, stamp: "s", by: "test", tells: true });
const envelope = {
  id: "t",
  agent: "a",
  lane: 0,
  input: {},
  inputHash: "h",
  at: 1_000,
  stamp: "s",
  by: "test",
};
const holder = { queue: "Q", seq: 1, token: "k", runner: "r", via: "v", lease: 10 };
const error = { code: "fatal", message: "no", phase: "handler" } as const;

const first = submitted({ ...envelope, meta: { owner: "ann", labels: { a: "b" } } }, "Q");
const running = apply(first, { type: "claim", ...holder }, mark());
const signalled = apply(running, { type: "signal", name: "go", value: null }, mark());
const documents: readonly Task[] = [
  first,
  running,
  signalled,
  scheduled(envelope, 2_000),
  adopted(envelope, holder, mark()),
  apply(running, { type: "complete", result: null, expiresAt: 9_000 }, mark()),
  apply(running, { type: "wait", waitingFor: ["go"], lingers: 0, dueAt: 5_000, summary: "?" }, mark()),
  apply(running, { type: "doubt", effect: "e", tries: 1, ended: true }, mark()),
  apply(running, { type: "fail", error, countsAttempt: true, ended: true, expiresAt: 9_000 }, mark()),
  apply(first, { type: "cancel", ended: true, expiresAt: 9_000 }, mark()),
  deadLetter(envelope, { queue: "Q", seq: 1, dispatch: 0 }, error, 9_000, mark(), {
    base64: "",
    bytes: 0,
    truncated: false,
    subject: "s",
  }),
];

const why = (read: () => unknown): string | undefined => {
  try {
    read();
    return undefined;
  } catch (thrown) {
    if (!(thrown instanceof Unreadable)) throw thrown;
    return thrown.why;
  }
};

test("every document that Pawl writes is read back, in every state", () => {
  expect(new Set(documents.map(({ state }) => state))).toEqual(new Set(states));
  for (const task of documents) expect(readTask(JSON.stringify(task), task.id)).toEqual(task);
});

/** All places of a document where a value stands, with a way to put another there. */
function* places(value: unknown, path: string[] = []): Generator<string[]> {
  if (typeof value !== "object" || value === null) return;
  for (const [key, inner] of Object.entries(value)) {
    yield [...path, key];
    yield* places(inner, [...path, key]);
  }
}

/** With that in its place, or without a value something of another kind. */
function changed(task: unknown, path: readonly string[], value?: unknown): string {
  // Both costs may be one object, which a structured clone would keep.
  const copy = JSON.parse(JSON.stringify(task)) as Record<string, unknown>;
  let at = copy;
  for (const key of path.slice(0, -1)) at = at[key] as Record<string, unknown>;
  const last = path.at(-1) as string;
  at[last] = value ?? (typeof at[last] === "boolean" ? 7 : true);
  return JSON.stringify(copy);
}

/** What an agent, a person or a submitter put there: anything is right. */
const FREE = /^(input|result)\b|^meta\.labels\.|\bvalue$/;

test("whatever stands in a field that it does not belong in, the field is named", () => {
  for (const task of documents) {
    for (const path of places(task)) {
      const name = path.join(".").replaceAll(/\.(\d+)/g, "[$1]");
      if (FREE.test(name)) continue;
      const told = why(() => readTask(changed(task, path), "t"));
      expect([`${name} is true`, `${name} is 7`], `${task.state} ${name}`).toContain(told?.split(";")[0]);
    }
  }
});

test("numbers are finite, times are dates", () => {
  const text = JSON.stringify(first);
  for (const [from, to, told] of [
    ['"fence":0', '"fence":1e400', "fence is Infinity; it should be a number"],
    ['"fence":0', '"fence":"0"', "fence is a text; it should be a number"],
    ['"updatedAt":1000', '"updatedAt":8.65e15', "updatedAt is 8650000000000000; it should be a time"],
    ['"usd":0', '"usd":null', "spent.usd is null; it should be a number"],
    ['"state":"dispatched","queue"', '"state":"done","queue"', "state is a text; it should be one of"],
    ['"settled":[]', '"settled":[7]', "settled[0] is 7; it should be an object"],
    ['"history":[', '"history":[{},', "history[0].at is missing; it should be a time"],
    ['"v":1', '"v":2', "v is 2; it should be 1"],
  ] as const) {
    expect(text).toContain(from);
    expect(why(() => readTask(text.replace(from, to), "t"))).toContain(told);
  }
});

test("what is no JSON is not quoted, and no document at all is none", () => {
  const secret = '{"key":"sk-secret" oops';
  expect(() => readTask(secret, "t")).toThrow("Task t's document can't be read: it is not JSON");
  expect(() => readTask(secret, "t")).not.toThrow(/secret/);
  for (const text of ["", "null", "7", '"a"', "[]", "true"])
    expect(
      why(() => readTask(text, "t")),
      text,
    ).toBeDefined();
});

test("fields of a later version, and an id that is another's, are no reason", () => {
  const later = { ...first, id: "other", later: "x", counts: { a: 1 } };
  expect(readTask(JSON.stringify(later), "t")).toEqual(later);
});

test("journals are read likewise", () => {
  const step: Entry = { kind: "step", key: "a#1", at: 0, alone: true, value: 1, when: 5 };
  const { head } = extended(emptyHead(first, 1, "s"), [step], "s2");
  expect(readHead(JSON.stringify(head), "t")).toEqual(head);
  expect(why(() => readHead(changed(head, ["recent", "0"], {}), "t"))).toBe(
    "recent[0].kind is missing; it should be a text",
  );
  for (const path of places(head)) {
    const name = path.join(".").replaceAll(/\.(\d+)/g, "[$1]");
    if (/^recent\[0\]\.(at|alone|value)$/.test(name)) continue;
    expect(why(() => readHead(changed(head, path), "t"))?.startsWith(name), name).toBe(true);
  }
  expect(() => readHead("[]", "t")).toThrow(
    "The journal of t can't be read: it is a list; it should be an object",
  );
});
