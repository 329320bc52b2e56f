import { existsSync } from "node:fs";
import { join } from "node:path";
import { Command } from "commander";
import { beforeAll, describe, expect, test } from "vitest";
import { configFrom } from "../../functions/wiring/config.ts";
import { USUAL } from "../../infra/init/choice.ts";
import { filesOf } from "../../infra/init/files.ts";
import { pinsFor } from "../../infra/init/pins.ts";
import { ROOT } from "../../infra/project.ts";
import { blocksOf, markdownFiles, read } from "../support/pages.ts";

const program = new Command("pawl");

/** All commands, as the command line itself adds them. */
beforeAll(async () => {
  const main = read("infra/cli/main.ts");
  for (const [, names = "", file = ""] of main.matchAll(/^import \{([^}]+)\} from "\.\/([^"]+)";$/gm)) {
    const added = names.split(",").filter((name) => /^ *add[A-Z]/.test(name));
    if (added.length === 0) continue;
    const exported = (await import(join(ROOT, "infra/cli", file))) as Record<string, unknown>;
    for (const name of added)
      (exported[name.trim()] as (...given: unknown[]) => void)(program, () => configFrom(process.env));
  }
  expect(program.commands.length).toBeGreaterThan(20);
});

const scriptsOf = (manifest = "") => (JSON.parse(manifest) as { scripts: Record<string, string> }).scripts;
/** Pawl's own, and those of a project that is made by `npm create pawl`. */
const scripts: Record<string, string> = {
  ...scriptsOf(filesOf(USUAL, pinsFor(process.version, USUAL.platform))["package.json"]),
  ...scriptsOf(read("package.json")),
};

/** Programs that are not ours: what they take is theirs to say. */
const OTHERS = new Set("cd curl echo export gcloud nats npm npx openssl printf source .".split(" "));

/** What is wrong with the words after `pawl`; `isWhole`: as they would be typed, with all arguments. */
function wrongWithPawl(words: readonly string[], isWhole = true): string | undefined {
  let command = program;
  let rest = [...words];
  for (;;) {
    const inner = command.commands.find(
      (one) => one.name() === rest[0] || one.aliases().includes(rest[0] ?? ""),
    );
    if (!inner) break;
    command = inner;
    rest = rest.slice(1);
  }
  const name = command === program ? "pawl" : `pawl ${command.name()}`;
  if (command.commands.length > 0 && (isWhole || /^[a-z]/.test(rest[0] ?? "")))
    return `${name} has no command ${rest[0]}`;
  const options = rest.map((word) => word.split("=")[0] ?? "").filter((word) => /^--?[a-z]/.test(word));
  const known = [...command.options, ...program.options].flatMap(({ long, short }) => [long, short]);
  const odd = options.find((word) => ![...known, "--help", "--version", "-h"].includes(word));
  if (odd) return `${name} has no option ${odd}`;
  if (!isWhole) return undefined;
  const { operands } = command.parseOptions(rest);
  const { registeredArguments: taken } = command;
  const needed = taken.filter(({ required }) => required).length;
  const most = taken.at(-1)?.variadic ? Number.POSITIVE_INFINITY : taken.length;
  if (operands.length >= needed && operands.length <= most) return undefined;
  return `${name} takes ${needed} to ${most} arguments, and gets ${operands.join(" ")}`;
}

/** Words as a shell has them, up to a comment; and the comment. */
function split(line: string): { words: string[]; comment: string } {
  const words: string[] = [];
  for (const [whole, single, double] of line.matchAll(
    /'([^']*)'|"((?:\\.|[^"])*)"|(?:[^\s'"]|=["'][^"']*["'])+/g,
  )) {
    if (whole.startsWith("#")) break;
    words.push(single ?? double ?? whole);
  }
  const comment = /(?:^|\s)#\s(.*)$/.exec(line)?.[1] ?? "";
  return { words, comment };
}

/** What is wrong with one command. `made`: files that those before it make. */
function wrongWith(line: string, made: Set<string> = new Set()): string | undefined {
  const { words: all, comment } = split(line);
  const words = all.filter(
    (word, i) => !(/^[A-Z_]+=/.test(word) && all.slice(0, i + 1).every((w) => /^[A-Z_]+=/.test(w))),
  );
  const redirected = words.findIndex((word) => /^[<>]/.test(word));
  const [first = "", second = "", third = "", ...rest] = redirected < 0 ? words : words.slice(0, redirected);
  if (first === "") return undefined;
  const said = [...comment.matchAll(/(?<![\w-])--[a-z][\w-]*/g)].map(([option]) => option);
  const ours = (given: readonly string[]) =>
    wrongWithPawl(given) ??
    (said.length > 0 ? wrongWithPawl([...leading(given), ...said], false) : undefined);
  if (first === "npx" && second === "pawl") {
    if (third === "new") for (const end of ["", ".ts", ".test.ts"]) made.add(`agents/${rest[0]}${end}`);
    return ours([third, ...rest]);
  }
  if (first === "pawl") return ours([second, third, ...rest].filter((word) => word !== ""));
  if (first === "npm" && second === "run") {
    const script = scripts[third];
    if (script === undefined) return `package.json has no script ${third}`;
    const [, command] = /^(?:node infra\/cli\/main\.ts|pawl) (\w+)/.exec(script) ?? [];
    return command ? ours([command, ...rest.filter((word) => word !== "--")]) : undefined;
  }
  if (first === "npx" && second === "vitest") {
    const path = rest.find((word) => word.includes("/"));
    return path && !made.has(path) && !existsSync(join(ROOT, path)) ? `there is no ${path}` : undefined;
  }
  if (first === "node") return existsSync(join(ROOT, second)) ? undefined : `there is no ${second}`;
  return OTHERS.has(first) ? undefined : `nobody knows the command ${first}`;
}

const leading = (words: readonly string[]) => words.filter((word) => /^[a-z]+$/.test(word)).slice(0, 2);

/** The commands of a block, one after the other. */
function commandsOf(code: string): string[] {
  const lines = code.replaceAll("\\\n", " ").split("\n");
  return lines.flatMap((line) => {
    const { comment } = split(line);
    const bare = comment ? line.slice(0, line.lastIndexOf("# ")) : line;
    const parts = bare
      .replaceAll(/^\(|\)(?= |$)| \(/g, " ")
      .split(/ && | \| /)
      .filter((part) => part.trim() !== "");
    return parts.map((part, i) => (i === parts.length - 1 && comment ? `${part} # ${comment}` : part));
  });
}

test("every command in a block is one, with options and arguments that it has", () => {
  let checked = 0;
  const wrong = markdownFiles()
    .flatMap(blocksOf)
    .filter(({ language }) => language === "sh")
    .flatMap(({ where, code }) => {
      const made = new Set<string>();
      return commandsOf(code).map((line) => {
        checked++;
        const found = wrongWith(line.trim(), made);
        return found && `${where}: ${line.trim()}: ${found}`;
      });
    });
  expect(wrong.filter((one) => one !== undefined)).toEqual([]);
  expect(checked).toBeGreaterThan(90);
});

test("every command in the text is one, with options that it has", () => {
  let checked = 0;
  const wrong = markdownFiles().flatMap((file) =>
    [
      ...read(file)
        .replaceAll(/^ *```[\s\S]*?^ *```$/gm, "")
        .matchAll(/`(?:npx )?pawl ([a-z][^`\n]*)`/g),
    ].map(([whole, said = ""]) => {
      checked++;
      // "dlq ls|show": either.
      const found = wrongWithPawl(split(said.replaceAll(/(?<=\w)\\?\|\S+/g, "")).words, false);
      return found && `${file}: ${whole}: ${found}`;
    }),
  );
  expect(wrong.filter((one) => one !== undefined)).toEqual([]);
  expect(checked).toBeGreaterThan(100);
});

describe("a wrong command is found", () => {
  test.each([
    ["npx pawl sumbit echo '{}'", /pawl has no command sumbit/],
    ["npx pawl token make", /pawl token has no command make/],
    ["npx pawl submit echo '{}' --label-all", /pawl submit has no option --label-all/],
    ["npx pawl status", /pawl status takes 1 to 1 arguments/],
    ["npx pawl status t   # --jsn: for machines", /pawl status has no option --jsn/],
    ["npm run buidl -- echo", /no script buidl/],
    ["npm run deploy -- echo --platform gcp", /pawl deploy has no option --platform/],
    ["npx vitest run test/nowhere", /there is no test\/nowhere/],
    ["pwal submit", /nobody knows the command pwal/],
  ])("%s", (line, why) => {
    expect(wrongWith(line)).toMatch(why);
  });
});
