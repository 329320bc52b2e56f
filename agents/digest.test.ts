import { expect, test } from "vitest";
import { everyCrash } from "../shared/testing.ts";
import digest from "./digest.ts";

test("one child for each page, however often the parent starts", async () => {
  const asked: string[] = [];
  const children = (agent: string, input: object) => {
    asked.push(agent);
    return { summary: `of ${(input as { urls: string[] }).urls[0]}` };
  };
  const input = { urls: ["https://a.test/", "https://b.test/", "https://c.test/"] };
  const runs = await everyCrash(digest, input, { children });
  expect(runs.length).toBeGreaterThan(5);
  for (const { crash, run } of runs) {
    expect(run, `crash ${crash}`).toMatchObject({
      state: "completed",
      result: { digest: ["of https://a.test/", "of https://b.test/", "of https://c.test/"] },
    });
  }
  // The run that counts the points, and one for each of them.
  expect(asked).toHaveLength(3 * (runs.length + 1));
});
