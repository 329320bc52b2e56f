import { expect, test } from "vitest";
import { runAgent } from "../shared/testing.ts";
import echo from "./echo.ts";

test("gives back what it got", async () => {
  expect(await runAgent(echo, { text: "hello" })).toMatchObject({
    state: "completed",
    result: { echo: "hello" },
  });
});
