import type { Command, Option } from "commander";

/** Names that are known only when they are asked for, by what an argument or an option's value is called. */
export interface Names {
  agents(): Promise<readonly string[]>;
  functions(): Promise<readonly string[]>;
}

/**
 * What the last of these words may become, by the tree of commands that runs them: commands, options, and values where they
 * are few. `words`: all after the program's name, the last one perhaps empty or half written.
 */
export async function completions(
  program: Command,
  words: readonly string[],
  names: Names,
): Promise<readonly string[]> {
  const before = words.slice(0, -1);
  const current = words.at(-1) ?? "";
  const { command, args, option } = walk(program, before);
  const isFit = (one: string) => one.startsWith(current);
  if (option) return valuesOf(option.attributeName(), option.argChoices, current, names);
  const isPast = before.includes("--");
  if (current.startsWith("-") && !isPast) return optionsOf(command, before).filter(isFit);
  const commands = args.length === 0 ? visible(command).map((one) => one.name()) : [];
  const declared = command.registeredArguments;
  const last = declared.at(-1);
  const next = declared[args.length] ?? (last?.variadic ? last : undefined);
  const values = next ? await valuesOf(next.name(), next.argChoices, current, names) : [];
  return [...commands.filter(isFit), ...values.filter((one) => !args.includes(one))];
}

/** The command that these words lead to, its arguments so far, and the option whose value comes next, if one does. */
function walk(program: Command, words: readonly string[]) {
  let command = program;
  let args: string[] = [];
  let option: Option | undefined;
  let isPast = false;
  for (const word of words) {
    const inner = args.length === 0 ? visible(command).find((one) => one.name() === word) : undefined;
    if (option) option = undefined;
    else if (word === "--") isPast = true;
    else if (word.startsWith("-") && !isPast) {
      const found = command.options.find(({ long, short }) => long === word || short === word);
      if (found?.required || found?.optional) option = found;
    } else if (inner) [command, args] = [inner, []];
    else args = [...args, word];
  }
  return { command, args, option };
}

const visible = (command: Command): Command[] => [...command.createHelp().visibleCommands(command)];

/** Those that were not said yet, unless they may be repeated. */
function optionsOf(command: Command, before: readonly string[]): string[] {
  const all = command.createHelp().visibleOptions(command);
  const mayRepeat = ({ parseArg, argChoices }: Option) => parseArg !== undefined && argChoices === undefined;
  return all.flatMap((one) => (one.long && (mayRepeat(one) || !before.includes(one.long)) ? [one.long] : []));
}

async function valuesOf(
  what: string,
  choices: readonly string[] | undefined,
  current: string,
  names: Names,
): Promise<readonly string[]> {
  const isFit = (one: string) => one.startsWith(current);
  if (choices) return choices.filter(isFit);
  if (what === "agent") return (await names.agents()).filter(isFit);
  if (what === "function") return (await names.functions()).filter(isFit);
  if (what !== "agents") return [];
  // Several in one word, as in --agents echo,digest.
  const [, said = ""] = /^(.*,)?/.exec(current) ?? [];
  return (await names.agents()).map((one) => `${said}${one}`).filter(isFit);
}

export const SHELLS = ["bash", "zsh", "fish"] as const;
export type Shell = (typeof SHELLS)[number];

/** What a shell has to be told once: it asks the program itself each time, so that nothing in it grows old. */
export const scripts: Readonly<Record<Shell, string>> = {
  bash: `# pawl's completion for bash. Put this into ~/.bashrc: source <(pawl completion bash)
_pawl() {
  local words
  # Without the words that bash makes of what stands between : and =.
  read -ra words <<< "\${COMP_LINE:0:COMP_POINT}"
  [[ \${COMP_LINE:COMP_POINT-1:1} == " " ]] && words+=("")
  local IFS=$'\\n'
  COMPREPLY=($("\${words[0]}" complete -- "\${words[@]:1}" 2> /dev/null))
}
complete -o default -F _pawl pawl
`,
  zsh: `# pawl's completion for zsh. Put this into ~/.zshrc, after compinit: source <(pawl completion zsh)
_pawl() {
  local -a found
  found=(\${(f)"$("\${words[1]}" complete -- "\${(@)words[2,CURRENT]}" 2> /dev/null)"})
  if (( \${#found} )); then compadd -a found; else _files; fi
}
compdef _pawl pawl
`,
  fish: `# pawl's completion for fish. Put this into ~/.config/fish/config.fish: pawl completion fish | source
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
`,
};
