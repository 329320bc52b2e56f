import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join, relative, resolve } from "node:path";
import type { Command } from "commander";
import { PawlError } from "../../../shared/errors/errors.ts";
import { checkAgentName } from "../../../shared/task/names.ts";
import { agentsFolder } from "../../agents.ts";
import { isCoreIdentity } from "../../creds/plan.ts";
import { isInstalled, projectFolder, ROOT } from "../../project.ts";
import { say, sayJson } from "../output.ts";

export function addNew(program: Command): void {
  program
    .command("new")
    .description("write a new agent, with its test")
    .argument("<name>", "a letter, then a-z 0-9 -: it names the file, the agent and its queues")
    .option("--json", "answer in JSON")
    .addHelpText("after", "\nExample:\n  pawl new invoice && npx vitest run agents/invoice")
    .action(async (name: string, options: { json?: boolean }) => {
      checkAgentName(name);
      if (isCoreIdentity(name))
        throw new PawlError(
          "agent_name_invalid",
          `${name} is the name of one of Pawl's functions or identities: choose another name`,
        );
      const folder = agentsFolder();
      const files = { [`${name}.ts`]: agent(folder), [`${name}.test.ts`]: test(name, folder) };
      const paths = Object.keys(files).map((file) => join(folder, file));
      const there = paths.find((path) => existsSync(path));
      if (there) throw new PawlError("agent_name_invalid", `${there} already exists: choose another name`);
      for (const [file, source] of Object.entries(files))
        await writeFile(join(folder, file), source, { flag: "wx" });
      const written = paths.map((path) => relative(process.cwd(), path));
      if (options.json) sayJson({ agent: name, files: written });
      else {
        say(`wrote ${written.join(" and ")}`);
        say(`  try it: npx vitest run ${written[1]}`);
      }
    });
}

/** How agents import Pawl: by its name, but for those of its own repository. */
function from(folder: string, door: "agent" | "testing"): string {
  const isOurs = !isInstalled && projectFolder(folder) === resolve(ROOT);
  if (!isOurs) return door === "agent" ? "pawl" : "pawl/testing";
  const path = relative(folder, join(ROOT, "shared", `${door}.ts`));
  return path.startsWith(".") ? path : `./${path}`;
}

const agent = (folder: string) => `import * as z from "zod";
import { defineAgent } from "${from(folder, "agent")}";

export default defineAgent({
  input: z.object({ topic: z.string() }),
  limits: { timeout: "10m", attempts: 3, budgetUsd: 1 },
  async run({ input, step, llm }) {
    const facts = await step("facts", () => [\`\${input.topic} is a topic\`]);
    const answer = await llm("write", {
      model: "claude-sonnet-5-5",
      maxTokens: 1_000,
      prompt: \`Write one paragraph from these facts:\\n\${facts.join("\\n")}\`,
    });
    return { text: answer.text };
  },
});
`;

const test = (name: string, folder: string) => `import { expect, test } from "vitest";
import { everyCrash, runAgent } from "${from(folder, "testing")}";
import agent from "./${name}.ts";

const model = ["It is a topic."];

test("writes a paragraph", async () => {
  const run = await runAgent(agent, { topic: "Pawl" }, { model });
  expect(run).toMatchObject({ state: "completed", result: { text: "It is a topic." } });
});

test("whatever crashes, it ends the same", async () => {
  for (const { crash, run } of await everyCrash(agent, { topic: "Pawl" }, { model }))
    expect(run, crash).toMatchObject({ state: "completed", result: { text: "It is a topic." } });
});
`;
