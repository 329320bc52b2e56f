/** What the modules that authors import export, read from their source: declarations, and the comments before them. */
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";

export interface Member {
  readonly signature: string;
  readonly says: string;
}

export interface Exported {
  readonly name: string;
  readonly signature: string;
  readonly says: string;
  readonly members: readonly Member[];
}

/** What a module exports, in its own order: first what it declares, then what it passes on. Throws where a comment is missing. */
export function exportsOf(file: string): Exported[] {
  const text = readFileSync(file, "utf8");
  const declared = [...text.matchAll(/^export (?:async )?(?:interface|class|function|type|const) (\w+)/gm)];
  const here = declared.map(([, name]) => ({ name: name as string, file }));
  const passed = [...text.matchAll(/^export (?:type )?\{([^}]*)\}(?: from "([^"]+)")?;/gm)].flatMap(
    ([, names = "", from]) =>
      names
        .split(",")
        .map((one) => one.replace(/\btype\b/, "").trim())
        .filter((name) => name !== "")
        .map((name) => ({ name, file: join(dirname(file), from ?? importOf(text, name)) })),
  );
  const all = [...here, ...passed].map(({ name, file: from }) =>
    declarationOf(readFileSync(from, "utf8"), name),
  );
  const mute = all.flatMap(({ name, says, members }) => [
    ...(says === "" ? [name] : []),
    ...members.filter((one) => one.says === "").map(({ signature }) => `${name}: ${signature}`),
  ]);
  if (mute.length > 0)
    throw new Error(`${file}: these have no comment for the reference: ${mute.join("; ")}`);
  return all;
}

function importOf(text: string, name: string): string {
  const from = [...text.matchAll(/^import (?:type )?\{([^}]*)\} from "([^"]+)";/gm)].find(([, names = ""]) =>
    new RegExp(`\\b${name}\\b`).test(names),
  );
  if (!from) throw new Error(`Nobody can tell where ${name} comes from`);
  return from[2] as string;
}

function declarationOf(text: string, name: string): Exported {
  const begins = new RegExp(
    `^export (?:async )?(?:interface|class|function|type|const) ${name}\\b`,
    "m",
  ).exec(text);
  if (!begins) throw new Error(`${name} is not declared where it should be`);
  const says = commentBefore(text.slice(0, begins.index));
  const rest = text.slice(begins.index).replace(/^export (?:async )?/, "");
  if (rest.startsWith("function")) {
    const [, signature = ""] = /^function ([\s\S]*?\)(?:: [^{]+?)?) \{\n/.exec(rest) ?? [];
    return { name, says, signature: flat(signature), members: [] };
  }
  if (rest.startsWith("type") || rest.startsWith("const"))
    return { name, says, signature: flat(upTo(rest, ";")), members: [] };
  const head = upTo(rest, "{");
  const body = insideOf(rest.slice(head.length));
  if (rest.startsWith("class")) return classOf(body, name, says);
  // What is made by a function of ours is passed along, and nobody's to look into.
  const members = /\bMade by\b/.test(says) ? [] : membersOf(body);
  return { name, says, signature: flat(head.replace(/^interface /, "")), members };
}

/** Of a class: how it is made, and its fields. */
function classOf(body: string, name: string, says: string): Exported {
  const [, parameters = ""] = /constructor\(([\s\S]*?)\) \{/.exec(body) ?? [];
  const members = membersOf(body.slice(0, body.indexOf("constructor("))).filter(
    ({ signature }) => !/^(?:override|static|private)\b/.test(signature),
  );
  return { name, says, signature: flat(`new ${name}(${parameters})`), members };
}

function membersOf(body: string): Member[] {
  const members: Member[] = [];
  let rest = body;
  for (;;) {
    const [blank] = /^(?:\s|\/\*\*[\s\S]*?\*\/|\/\/[^\n]*)*/.exec(rest) as unknown as [string];
    rest = rest.slice(blank.length);
    if (rest === "") return members;
    const signature = upTo(rest, ";");
    rest = rest.slice(signature.length + 1);
    members.push({
      signature: flat(withoutComments(signature)).replace(/^readonly /, ""),
      says: commentBefore(blank),
    });
  }
}

const withoutComments = (text: string) => text.replace(/\/\*\*[\s\S]*?\*\//g, "");

/** The comment that a text ends with, as one paragraph. */
function commentBefore(text: string): string {
  const own = text.replace(/(?:^|\n)[ \t]*\/\/[^\n]*\s*$/, "\n");
  const at = own.lastIndexOf("/**");
  if (at < 0 || own.slice(own.indexOf("*/", at) + 2).trim() !== "") return "";
  return flat(own.slice(at + 3, own.indexOf("*/", at)).replace(/^\s*\* ?/gm, ""));
}

/** Up to the first such character that is in no bracket, text or comment. */
function upTo(text: string, end: string): string {
  let depth = 0;
  for (let i = 0; i < text.length; i++) {
    const [skipped] = /^(?:\/\*\*[\s\S]*?\*\/|"[^"\n]*")/.exec(text.slice(i, i + 2_000)) ?? [];
    if (skipped) i += skipped.length - 1;
    else if (depth === 0 && text[i] === end) return text.slice(0, i);
    else if ("({[".includes(text[i] as string)) depth++;
    else if (")}]".includes(text[i] as string)) depth--;
  }
  return text;
}

/** Between a brace and the one that closes it. */
function insideOf(text: string): string {
  return upTo(text.slice(1), "}");
}

/** In one line. */
function flat(text: string): string {
  const line = text.replace(/\s+/g, " ").trim();
  return line.replaceAll("( ", "(").replaceAll(", )", ")").replace(/= \| /, "= ");
}

/** As a page has it. */
export function written(all: readonly Exported[]): string {
  return all
    .map(({ name, signature, says, members }) => {
      const list = members.map((one) => `- **\`${one.signature}\`**: ${one.says}`).join("\n");
      // An interface without parameters has said all with its name.
      const code = signature === name ? "" : `\`\`\`ts\n${signature}\n\`\`\``;
      return [`### ${name}`, says, code, list].filter((part) => part !== "").join("\n\n");
    })
    .join("\n\n");
}
