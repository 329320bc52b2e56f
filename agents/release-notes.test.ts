import { afterEach, expect, test, vi } from "vitest";
import { asks, everyCrash, runAgent } from "../shared/testing.ts";
import agent from "./release-notes.ts";

afterEach(() => vi.unstubAllGlobals());

/** A repository and a board, in memory. */
function world() {
  const posts: string[] = [];
  vi.stubGlobal("fetch", async (address: string, init: RequestInit = {}) => {
    const url = new URL(address);
    if (url.hostname === "api.test") {
      return Response.json(
        /commits\/c1/.test(address) ? { message: "Faster start" } : [{ sha: "c1", title: "Faster" }],
      );
    }
    if (init.method === "POST") {
      posts.push((JSON.parse(String(init.body)) as { key: string }).key);
      return new Response("posted");
    }
    return new Response("", { status: posts.includes(url.searchParams.get("key") ?? "") ? 200 : 404 });
  });
  return posts;
}

const input = {
  api: "https://api.test/v1",
  repo: "pawl",
  since: "2026-11-01",
  board: "https://board.test/posts",
};
const model = [asks(["look_up_commit", { sha: "c1" }]), "- It starts faster."];
const approvals = { publish: { approved: true, by: "ann" } };

test("drafts, asks, posts", async () => {
  const posts = world();
  const run = await runAgent(agent, input, { model, approvals });
  expect(run).toMatchObject({
    state: "completed",
    result: { text: "- It starts faster.", approvedBy: "ann", post: { key: posts[0] } },
  });
  expect(posts).toHaveLength(1);
});

test("whatever crashes, it is posted at most once, and where nobody can know a person is asked", async () => {
  const worlds: string[][] = [];
  const runs = await everyCrash(agent, input, () => {
    worlds.push(world());
    return { model, approvals };
  });
  expect(Math.max(...worlds.map((posts) => posts.length))).toBe(1);
  // Dead after the intent and before it was posted: verify says "no", which proves nothing.
  const doubtful = runs.filter(({ run }) => run.state !== "completed");
  expect(doubtful.map(({ run }) => run.state)).toEqual(["in_doubt"]);
  expect(doubtful[0]?.run.journal.at(-1)).toMatchObject({ kind: "intent", key: "post#1" });
});

test("posted, and dead before the receipt: verify finds it", async () => {
  const posts = world();
  const run = await runAgent(agent, input, { model, approvals, crashBefore: "receipt:post" });
  expect([run.state, posts.length]).toEqual(["completed", 1]);
});

test("nobody answers for a week: nothing is posted", async () => {
  const posts = world();
  const run = await runAgent(agent, input, { model });
  expect(run).toMatchObject({ state: "failed", error: { code: "approval_timeout" } });
  expect(run.elapsed).toBe(7 * 86_400_000);
  expect(posts).toEqual([]);
});
