import { afterAll, beforeAll, expect, test } from "vitest";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { cancel } from "../../shared/dispatch/operate.ts";
import { pagesStage } from "../support/http/pages.ts";
import { testNats } from "../support/servers/stores.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

type Stage = Awaited<ReturnType<typeof pagesStage>>;
const fail = () => {
  throw new Error("The mail server is away");
};

async function withTasks(...some: { id: string; meta?: { owner: string } }[]) {
  const s = await pagesStage(nats);
  for (const one of some) await s.submit({}, one);
  return s;
}

const boxes = (text: string) =>
  [...text.matchAll(/name="task" value="([^"]*)"/g)].map(([, one]) => one as string);
const form = (fields: Record<string, string>, tasks: readonly string[]) => {
  const body = new URLSearchParams(fields);
  for (const one of tasks) body.append("task", one);
  return body;
};
async function send(s: Stage, token: string, body: URLSearchParams) {
  const headers = { cookie: `pawl=${token}`, "sec-fetch-site": "same-origin", origin: "null" };
  return s.request("/ui/tasks/several", { method: "POST", headers, body });
}

test("those chosen are cancelled, after a second question; the others are not", async () => {
  await using s = await withTasks({ id: "a" }, { id: "b" }, { id: "c" });
  const ann = await s.visitor("ann");
  const list = (await ann.get("/ui/tasks")).text;
  const chosen = boxes(list).filter((one) => !one.startsWith("c "));
  const key = await ann.field("/ui/tasks", "key");
  const fields = { key, verb: "cancel", back: "/ui/tasks?agent=tested" };
  const asked = await send(s, ann.token, form(fields, chosen));
  expect(asked.text).toContain("Cancel: 2 tasks?");
  expect((await s.task("a")).state).toBe("dispatched");
  expect(boxes(asked.text)).toEqual(chosen);
  const done = await send(s, ann.token, form({ ...fields, sure: "yes" }, chosen));
  expect(done.text).toContain("2 of 2 cancelled");
  expect(done.text).toContain('href="/ui/tasks?agent=tested"');
  expect([(await s.task("a")).state, (await s.task("b")).state, (await s.task("c")).state]).toEqual([
    "cancelled",
    "cancelled",
    "dispatched",
  ]);
  // A second click says of each why nothing was done.
  const again = await send(s, ann.token, form({ ...fields, sure: "yes" }, chosen));
  expect(again.text).toContain("0 of 2 cancelled");
  expect(again.text).toContain("It is cancelled by now");
});

test("dead letters are tried again; one that has moved on since the list was made is left alone", async () => {
  await using s = await pagesStage(nats, fail);
  for (const id of ["a", "b"]) await s.submit({}, { id });
  await s.drain();
  const ann = await s.visitor("ann");
  const chosen = boxes((await ann.get("/ui/dead-letters")).text).sort();
  expect(chosen).toHaveLength(2);
  const key = await ann.field("/ui/tasks", "key");
  const stale = chosen.map((one) => (one.startsWith("b ") ? "b another-question" : one));
  const done = await send(
    s,
    ann.token,
    form({ key, verb: "redrive", sure: "yes", back: "//evil.example" }, stale),
  );
  expect(done.text).toContain("1 of 2 started again");
  expect(done.text).toContain("It has moved on since the list was made");
  expect(done.text).not.toContain("evil");
  expect([(await s.task("a")).state, (await s.task("b")).state]).toEqual(["dispatched", "failed"]);
});

test("all on a page: those that it shows and that it can be done to, after a second question", async () => {
  await using s = await withTasks({ id: "over" }, { id: "a" }, { id: "b" });
  await cancel(s.deps, "over");
  const ann = await s.visitor("ann");
  const { text } = await ann.get("/ui/tasks");
  expect(text).toMatch(/value="cancel shown">Cancel all 2 on this page…</);
  const shown = [...text.matchAll(/name="shown" value="([^"]*)"/g)].map(([, one]) => one as string);
  const body = form({ key: await ann.field("/ui", "key"), verb: "cancel shown", back: "/ui/tasks" }, []);
  for (const one of shown) body.append("shown", one);
  // What somebody had ticked before is no part of it.
  body.append("task", "over x");
  const asked = await send(s, ann.token, body);
  expect(asked.text).toContain("Cancel: 2 tasks?");
  expect(
    boxes(asked.text)
      .map((one) => one.split(" ")[0])
      .sort(),
  ).toEqual(["a", "b"]);
  expect((await s.task("a")).state).toBe("dispatched");
});

const hidden = (text: string) =>
  Object.fromEntries(
    [...text.matchAll(/type="hidden" name="(\w+)" value="([^"]*)"/g)].map(([, name, value]) => [
      name as string,
      (value as string).replaceAll("&amp;", "&"),
    ]),
  );
const submitAll = async (s: Stage, name: string, count: number, owner: string) => {
  for (let n = 0; n < count; n += 20)
    await Promise.all(
      Array.from({ length: Math.min(20, count - n) }, (_, i) =>
        s.submit({}, { id: `${name}-${n + i}`, meta: { owner } }),
      ),
    );
};
const statesOf = async (s: Stage) => {
  const { tasks } = await s.deps.store.list({}, 1_000);
  const counts: Record<string, number> = {};
  for (const { id, state } of tasks) {
    const name = `${id.replace(/-\d+$/, "")} ${state}`;
    counts[name] = (counts[name] ?? 0) + 1;
  }
  return counts;
};

test("all that match: counted before, fifty at a time, and those that came since are left alone", async () => {
  await using s = await withTasks();
  await submitAll(s, "ann", 120, "ann");
  await submitAll(s, "bob", 3, "bob");
  await cancel(s.deps, "ann-7");
  const ann = await s.visitor("ann");
  const key = await ann.field("/ui/tasks", "key");
  const back = "/ui/tasks?owner=ann&cursor=9&limit=5";
  const asked = await send(s, ann.token, form({ key, verb: "cancel matching", back }, []));
  expect(asked.text).toContain("<h1>Cancel: 119 tasks?</h1>");
  expect(asked.text).toContain("All of owner ann.");
  expect(asked.text.match(/<li><code>ann-/g)).toHaveLength(10);
  expect(await statesOf(s)).toMatchObject({ "ann dispatched": 119 });
  await submitAll(s, "late", 1, "ann");
  const said: (string | undefined)[] = [];
  for (let answer = asked; /id="sure"/.test(answer.text); ) {
    answer = await send(s, ann.token, form(hidden(answer.text), []));
    said.push(/<h1>([^<]*)</.exec(answer.text)?.[1]);
    if (said.length === 1)
      expect(await statesOf(s)).toMatchObject({ "ann cancelled": 51, "ann dispatched": 69 });
  }
  expect(said).toEqual([
    "50 cancelled, or asked to stop so far",
    "100 cancelled, or asked to stop so far",
    "119 cancelled, or asked to stop",
  ]);
  expect(await statesOf(s)).toEqual({ "ann cancelled": 120, "bob dispatched": 3, "late dispatched": 1 });
  // There is nothing to be asked about.
  const none = await send(
    s,
    ann.token,
    form({ key, verb: "cancel matching", back: "/ui/tasks?owner=cid" }, []),
  );
  expect(none.text).toContain("Cancel: 0 tasks?");
  expect(none.text).not.toContain('id="sure"');
});

test("all that match: dead letters of a reason are tried again, and who sees less does it to less", async () => {
  await using s = await pagesStage(nats, fail);
  await submitAll(s, "ann", 2, "ann");
  await submitAll(s, "bob", 2, "bob");
  await s.drain();
  const eve = await s.visitor("eve", ["read", "operate"], ["other"]);
  const matching = async (
    who: { token: string; field(path: string, name: string): Promise<string> },
    back: string,
  ) => {
    const key = await who.field("/ui", "key");
    const asked = await send(s, who.token, form({ key, verb: "redrive matching", back }, []));
    const done = await send(s, who.token, form({ ...hidden(asked.text), sure: "yes" }, []));
    return [asked, done].map(({ text }) => /<h1>([^<]*)</.exec(text)?.[1]);
  };
  expect((await matching(eve, "/ui/dead-letters"))[0]).toBe("Try again: 0 tasks?");
  const ann = await s.visitor("ann");
  expect((await matching(ann, "/ui/dead-letters?error=fatal"))[0]).toBe("Try again: 0 tasks?");
  expect(await statesOf(s)).toEqual({ "ann failed": 2, "bob failed": 2 });
  expect(await matching(ann, "/ui/dead-letters?error=attempts_exhausted&owner=bob")).toEqual([
    "Try again: 2 tasks?",
    "2 started again",
  ]);
  expect(await statesOf(s)).toEqual({ "ann failed": 2, "bob dispatched": 2 });
  const cid = await s.visitor("cid", ["read"]);
  const refused = await send(
    s,
    cid.token,
    form(
      {
        key: await cid.field("/ui", "key"),
        verb: "redrive matching",
        sure: "yes",
        back: "/ui/dead-letters",
      },
      [],
    ),
  );
  expect(refused.status).toBe(403);
});

test("nobody does it who may not, nor by another's form, nor to tasks that are not theirs to see", async () => {
  await using s = await withTasks({ id: "a", meta: { owner: "ann" } });
  const bob = await s.visitor("bob", ["read"]);
  expect((await bob.get("/ui/tasks")).text).not.toContain('type="checkbox"');
  const fields = { key: await bob.field("/ui", "key"), verb: "cancel", sure: "yes" };
  expect((await send(s, bob.token, form(fields, ["a x"]))).status).toBe(403);
  const other = await s.visitor("eve", ["read", "operate"], ["other"]);
  const theirs = { ...fields, key: await other.field("/ui", "key") };
  expect((await send(s, other.token, form({ ...theirs, key: "x" }, ["a x"]))).status).toBe(403);
  expect((await send(s, other.token, form(theirs, ["a x"]))).text).toContain("There is no task");
  expect((await send(s, other.token, form(theirs, []))).status).toBe(422);
  expect((await send(s, other.token, form({ ...theirs, verb: "toString" }, ["a x"]))).status).toBe(422);
  expect((await s.task("a")).state).toBe("dispatched");
});
