import { execFileSync, spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { Argument, Command, Option } from "commander";
import { describe, expect, inject, test } from "vitest";
import { completions, SHELLS, scripts } from "../../infra/cli/completion.ts";
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

/** Lines as somebody types them, and what the Tab key makes of them. */
const TYPED = {
  "pawl tas": "tasks",
  "pawl tasks --state in": "in_doubt",
  "pawl run rec": "recorder",
  "pawl dlq ls --ag": "--agent",
  "pawl token create --agents recorder,st": "recorder,stepper",
  "pawl completion ": "bash fish zsh",
};

/** How each shell is told of a line, and asked what it may become: the words of it, separated by spaces, after a |. */
const ASKED = {
  bash: {
    options: ["--norc"],
    script: `set -eu
source <(pawl completion bash)
[[ $(complete -p pawl) == "complete -o default -F _pawl pawl" ]]
while IFS= read -r line; do
  COMP_LINE=$line COMP_POINT=\${#line} COMPREPLY=()
  _pawl
  echo "$line|\${COMPREPLY[*]-}"
done`,
  },
  // With what the widget of the Tab key would have given it, and the builtins that work nowhere else written down.
  zsh: {
    options: ["-f"],
    script: `setopt err_exit no_unset
compdef() { [[ "$*" == "_pawl pawl" ]] }
compadd() { print -r -- "$line|\${(P)2}" }
_files() { print -r -- "$line|(files)" }
source <(pawl completion zsh)
while IFS= read -r line; do
  words=("\${(@s: :)line}") CURRENT=$#words
  _pawl
done`,
  },
  fish: {
    options: ["--no-config"],
    script: `pawl completion fish | source
while read -l line
  echo "$line|"(complete -C "$line" | string join " ")
end`,
  },
} as const;

const isThere = (shell: string) => spawnSync(shell, ["--version"]).error === undefined;

test.each(SHELLS.filter(isThere))(
  "a real %s completes commands, options, agents and states, and files where there is nothing of Pawl's",
  (shell) => {
    const folder = mkdtempSync(join(tmpdir(), `pawl-${shell}-`));
    writeFileSync(join(folder, "pawl"), `#!/bin/sh\nexec "${process.execPath}" "${pawl}" "$@"\n`);
    chmodSync(join(folder, "pawl"), 0o755);
    writeFileSync(join(folder, "a-file"), "");
    const { options, script } = ASKED[shell];
    const said = execFileSync(shell, [...options, "-c", script], {
      cwd: folder,
      env: { PATH: [folder, process.env.PATH].join(delimiter), HOME: folder, PAWL_AGENTS_DIR: agents },
      input: `${[...Object.keys(TYPED), "pawl zzz a-"].join("\n")}\n`,
      encoding: "utf8",
    });
    const found = said
      .trimEnd()
      .split("\n")
      .map((line) => line.split("|"));
    const sorted = found
      .slice(0, -1)
      .map(([line, words = ""]) => [line, words.split(" ").toSorted().join(" ")]);
    expect(Object.fromEntries(sorted)).toEqual(TYPED);
    // bash looks for them by itself.
    const files = { bash: "", zsh: "(files)", fish: "a-file" };
    expect(found.at(-1)).toEqual(["pawl zzz a-", files[shell]]);
  },
);

test("what zsh and fish are told, of which each line was tried in both: a machine may have neither", () => {
  expect(scripts.zsh).toMatchInlineSnapshot(`
    "# pawl's completion for zsh. Put this into ~/.zshrc, after compinit: source <(pawl completion zsh)
    _pawl() {
      local -a found
      found=(\${(f)"$("\${words[1]}" complete -- "\${(@)words[2,CURRENT]}" 2> /dev/null)"})
      if (( \${#found} )); then compadd -a found; else _files; fi
    }
    compdef _pawl pawl
    "
  `);
  expect(scripts.fish).toMatchInlineSnapshot(`
    "# pawl's completion for fish. Put this into ~/.config/fish/config.fish: pawl completion fish | source
    function __pawl_complete
      set -l words (commandline -opc) (commandline -ct)
      set -l found ($words[1] complete -- $words[2..-1] 2> /dev/null)
      # Files only where there is nothing of pawl's, as other shells do it.
      if set -q found[1]
        printf '%s\\n' $found
      else
        __fish_complete_path (commandline -ct)
      end
    end
    complete -c pawl -f -a "(__pawl_complete)"
    "
  `);
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
