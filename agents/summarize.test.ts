import { afterEach, expect, test, vi } from "vitest";
import { everyCrash, runAgent } from "../shared/testing.ts";
import summarize from "./summarize.ts";

afterEach(() => vi.unstubAllGlobals());

function pages(answer: (url: string) => Response = (url) => new Response(`the page at ${url}`)): string[] {
  const read: string[] = [];
  vi.stubGlobal("fetch", async (url: string) => {
    read.push(url);
    return answer(url);
  });
  return read;
}

const input = { urls: ["https://a.test/", "https://b.test/"] };

test("sums pages up, whatever crashes", async () => {
  pages();
  for (const { crash, run } of await everyCrash(summarize, input, { model: ["Both are pages."] })) {
    expect(run, `crash ${crash}`).toMatchObject({
      state: "completed",
      result: { summary: "Both are pages.", pages: 2 },
      executions: 2,
    });
    // Only an answer that came and was not stored is asked for again: the fourth entry.
    expect(run.requests.length, crash).toBe(crash === "before 4" ? 2 : 1);
  }
});

test("a page that was read is not read again", async () => {
  const read = pages();
  await runAgent(summarize, input, { model: ["ok"], crashAfter: "step:read#2" });
  expect(read).toEqual(input.urls);
});

test("a page that is not there fails the task, one that is away is tried again", async () => {
  pages(() => new Response("", { status: 404 }));
  expect(await runAgent(summarize, input)).toMatchObject({ state: "failed", error: { code: "fatal" } });
  let asked = 0;
  pages(() => new Response("now", { status: ++asked < 3 ? 503 : 200 }));
  expect(await runAgent(summarize, input, { model: ["ok"] })).toMatchObject({
    state: "completed",
    executions: 3,
  });
});

test("an input that is none is refused", async () => {
  expect(await runAgent(summarize, { urls: [] })).toMatchObject({
    state: "failed",
    error: { code: "input_invalid" },
  });
});
