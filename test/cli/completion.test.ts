import { execFileSync } from "node:child_process";
import { chmodSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { Argument, Command, Option } from "commander";
import { describe, expect, inject, test } from "vitest";
import { completions, SHELLS } from "../../infra/cli/completion.ts";
import { startProcess } from "../support/servers/runners.ts";

const { pawl, agents } = inject("programs");

describe("what a word may become", () => {
  const program = new Command("tool");
  program.command("run").argument("[agents...]").option("--all").option("--json");
  program
    .command("tasks")
    .option("--agent <name>")
    .addOption(new Option("--state <state>").choices(["waiting", "failed"]))
    .option("--label <pair>", "", (one: string, all: string[] = []) => [...all, one]);
  program.command("build").argument("<function>");
  program.command("secret", { hidden: true });
  const tokens = program.command("token");
  tokens.command("create").option("--agents <names>");
  tokens.command("revoke").addArgument(new Argument("<how>").choices(["now", "never"]));
  const names = { agents: async () => ["digest", "echo"], functions: async () => ["digest", "echo", "api"] };

  test.each<[string, string[]]>([
    ["", ["run", "tasks", "build", "token", "help"]],
    ["t", ["tasks", "token"]],
    ["s", []],
    ["run ", ["digest", "echo"]],
    ["run digest ", ["echo"]],
    ["run --all d", ["digest"]],
    ["run --", ["--all", "--json", "--help"]],
    ["run --all --", ["--json", "--help"]],
    ["tasks --agent e", ["echo"]],
    ["tasks --state ", ["waiting", "failed"]],
    ["tasks --state waiting --st", []],
    ["tasks --label a=b --l", ["--label"]],
    ["tasks --label ", []],
    ["build a", ["api"]],
    ["token c", ["create"]],
    ["token create --agents ", ["digest", "echo"]],
    ["token create --agents echo,d", ["echo,digest"]],
    ["token revoke n", ["now", "never"]],
    ["run -- --", []],
    ["nothing of ours ", []],
  ])("%j", async (line, found) => {
    expect(await completions(program, line.split(" "), names)).toEqual(found);
  });
});

test("a real bash completes commands, options, agents and states", () => {
  const folder = mkdtempSync(join(tmpdir(), "pawl-bash-"));
  writeFileSync(join(folder, "pawl"), `#!/bin/sh\nexec "${process.execPath}" "${pawl}" "$@"\n`);
  chmodSync(join(folder, "pawl"), 0o755);
  const lines = [
    "pawl tas",
    "pawl tasks --state in",
    "pawl run rec",
    "pawl dlq ls --ag",
    "pawl completion ",
    "pawl zzz ",
  ];
  const script = `set -eu
source <(pawl completion bash)
complete -p pawl
while IFS= read -r line; do
  COMP_LINE=$line COMP_POINT=\${#line} COMPREPLY=()
  _pawl
  echo "$line|\${COMPREPLY[*]-}"
done`;
  const env = { PATH: [folder, process.env.PATH].join(delimiter), PAWL_AGENTS_DIR: agents };
  const said = execFileSync("bash", ["--norc", "-c", script], {
    env,
    input: `${lines.join("\n")}\n`,
    encoding: "utf8",
  });
  expect(said.trim().split("\n")).toEqual([
    "complete -o default -F _pawl pawl",
    "pawl tas|tasks",
    "pawl tasks --state in|in_doubt",
    "pawl run rec|recorder",
    "pawl dlq ls --ag|--agent",
    `pawl completion |${SHELLS.join(" ")}`,
    "pawl zzz |",
  ]);
});

test("completion: each shell's script, and a shell that nobody knows", async () => {
  for (const shell of SHELLS) {
    const command = startProcess([pawl, "completion", shell], {});
    expect(await command.exited).toBe(0);
    expect(command.text()).toContain(" complete -- ");
  }
  const wrong = startProcess([pawl, "completion", "tcsh"], {});
  expect(await wrong.exited).toBe(2);
  expect(wrong.text()).toMatch(/Allowed choices are bash, zsh, fish/);
});
