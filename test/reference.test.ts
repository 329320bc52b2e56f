import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { exportsOf } from "../infra/reference.ts";
import { tempAgents } from "./support/temp-agents.ts";

const root = join(import.meta.dirname, "..");
const agent = exportsOf(join(root, "shared/agent.ts"));
const saysOf = (name: string, member?: string) => {
  const one = agent.find((exported) => exported.name === name);
  return member === undefined
    ? one?.says
    : one?.members.find(({ signature }) => new RegExp(`^${member}\\b`).test(signature))?.says;
};

test("the reference has every value and every class that the three modules export", async () => {
  for (const file of ["agent", "testing", "client"]) {
    const names = exportsOf(join(root, `shared/${file}.ts`)).map(({ name }) => name);
    const exported = Object.keys(await import(`../shared/${file}.ts`));
    expect(names).toEqual(expect.arrayContaining(exported));
    expect(new Set(names).size).toBe(names.length);
  }
  expect(agent.map(({ name }) => name)).toEqual(
    expect.arrayContaining(["Limits", "AgentContext", "LlmRequest", "LlmAnswer", "Tool", "Json", "Cost"]),
  );
});

test("it says what people had to look for in the source", () => {
  expect(saysOf("LlmRequest", "messages")).toMatch(/Messages API.*answer\.messages/);
  expect(saysOf("LlmAnswer", "content")).toMatch(/blocks of its last turn/);
  expect(saysOf("ToolDefinition", "verify")).toMatch(/same input and key as `run`/);
  expect(saysOf("ToolDefinition", "readOnly")).toMatch(/`Retry` and `Fatal` are not/);
  expect(saysOf("Retry")).toMatch(/spends an attempt.*also for a 429: else/);
  const signature = agent
    .find(({ name }) => name === "AgentContext")
    ?.members.find((one) => /^approval/.test(one.signature));
  expect(signature?.signature).toBe(
    "approval(name: string, options?: { summary?: string; timeout?: string }): Promise<{ by: string; note?: string }>",
  );
});

test("what has no comment is named, and stops the docs from being made", () => {
  const file = join(tempAgents(), "module.ts");
  writeFileSync(
    file,
    `/** Has one. */
export interface Said {
  /** So has this; with braces. */
  readonly a: { readonly b: string; c(): void };
  readonly silent?: number;
}

export function mute(text: string): string {
  return text;
}
`,
  );
  expect(() => exportsOf(file)).toThrow(/no comment for the reference: Said: silent\?: number; mute$/);
});
