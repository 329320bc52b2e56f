/** The pages of docs/: their order, and the links that `npm run docs` puts on each to those beside it. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";

/** What people do with Pawl, in the order in which they come to it. */
export const parts = [
  "start here",
  "write",
  "test",
  "deploy",
  "operate",
  "reference",
  "architecture",
] as const;
export type Part = (typeof parts)[number];

/** Every page, in the order in which people need it. A new page is one line here, and `npm run docs`. */
export const pages: readonly (readonly [file: string, part: Part, says?: string])[] = [
  ["start.md", "start here", "a project of your own: create, test, run, deploy, upgrade"],
  ["author.md", "write", "steps, effects, models, budgets, approvals, children, schedules"],
  ["client.md", "write", "submitting, waiting and approving from other code, with the agents' types"],
  ["testing.md", "test", "in memory, through a crash at every point, and on the journals of what ran"],
  ["deploy.md", "deploy", "Cloudflare Workers and Google Cloud Run functions, one command each"],
  ["operator.md", "operate", "the dashboard, and the weekly report line by line"],
  ["monitoring.md", "operate", "alerts for Prometheus, a dashboard for Grafana, and a trace of each task"],
  ["doctor.md", "operate", "what can lose work or do it twice, here and in any stream and consumer"],
  ["drills.md", "operate", "faults done for real, on your machine or staging, and the promises judged"],
  ["scale.md", "operate", "how cost grows, the limits and what to do past them, a million tasks in dollars"],
  ["reference.md", "reference", "everything that agents, their tests and callers can import"],
  ["api.md", "reference", "requests, tokens and scopes, events, webhooks"],
  ["settings.md", "reference", "every setting, its default, and what is checked"],
  ["errors.md", "reference", "every error and what to do"],
  ["architecture.md", "architecture", "the code: a map, one task's path through it, the glossary"],
  ["lifecycle.md", "architecture", "a task's states, the lease and the fence, what happens if it dies where"],
  ["decisions/1-one-stream-a-lane.md", "architecture"],
  ["decisions/2-lease-and-fence.md", "architecture"],
  ["decisions/3-no-heartbeat-writes.md", "architecture"],
  ["decisions/4-own-rest-client.md", "architecture"],
  ["decisions/5-prices-are-a-table.md", "architecture"],
  ["decisions/6-seals.md", "architecture"],
  ["decisions/7-an-account-for-each-agent.md", "architecture"],
  ["decisions/8-fewer-messages.md", "architecture"],
  ["decisions/9-words-are-answers.md", "architecture"],
  ["simulator.md", "architecture", "the same code in a world that follows from one seed"],
  ["soak.md", "architecture", "everything killed, frozen and cut off, and what must hold"],
  ["bench.md", "architecture", "what Pawl costs, against the least that it could cost and against others"],
];

/** All pages, by the order of the table. */
const INDEX = "README.md";

/** What is wrong between the table and the folder: a page without its line, or a line without its page. */
export function strays(folder: string, listed = pages.map(([file]) => file)): string[] {
  const there = (readdirSync(folder, { recursive: true }) as string[]).filter((file) => file.endsWith(".md"));
  return [
    ...there
      .filter((file) => file !== INDEX && !listed.includes(file))
      .map(
        (file) =>
          `docs/${file} has no line in the table of pages: add it to infra/pages.ts, where a reader needs it`,
      ),
    ...listed
      .filter((file) => !existsSync(join(folder, file)))
      .map((file) => `infra/pages.ts names docs/${file}, which is not there`),
  ];
}

/** A page with its links: to the parts under its title, to the pages before and after it at its end. */
export function linked(folder: string, file: string, text: string): string {
  const own = pages.findIndex(([one]) => one === file);
  const above = block("parts", partsLine(file, pages[own]?.[1]));
  const below = block("beside", besideLine(folder, file, own));
  const bare = text
    .replace(/<!-- begin parts -->[\s\S]*?<!-- end parts -->\n\n/, "")
    .replace(/\n*<!-- begin beside -->[\s\S]*?<!-- end beside -->\n*$/, "\n");
  const headed = bare.replace(/^(# .*)\n+/, (_, title: string) => `${title}\n\n${above}\n\n`);
  return `${headed.trimEnd()}\n\n${below}\n`;
}

/** The list of all pages, part by part. */
export function index(folder: string): string {
  const lists = parts.map((part) => {
    const lines = pages
      .filter(([, one]) => one === part)
      .map(([file, , says]) => `- [${titleOf(folder, file)}](${file})${says ? `: ${says}` : ""}`);
    return lines.length > 0 ? `## ${capital(part)}\n\n${lines.join("\n")}` : "";
  });
  return lists.filter((list) => list !== "").join("\n\n");
}

/** The same in short, for a page outside of the folder: what each page says, without parts. */
export function shortIndex(folder: string): string {
  const lines = pages.map(([file, , says]) => says && `- [${titleOf(folder, file)}](docs/${file}): ${says}`);
  return lines.filter((line) => line !== undefined).join("\n");
}

function partsLine(file: string, own: Part | undefined): string {
  const links = parts.flatMap((part) => {
    const [first] = pages.find(([, one]) => one === part) ?? [];
    if (first === undefined) return [];
    const name = capital(part);
    if (part !== own) return [`[${name}](${path(file, first)})`];
    return [first === file ? `**${name}**` : `[**${name}**](${path(file, first)})`];
  });
  return links.join(" · ");
}

function besideLine(folder: string, file: string, own: number): string {
  const link = ([to]: (typeof pages)[number]) => `[${titleOf(folder, to)}](${path(file, to)})`;
  const before = pages[own - 1];
  const after = pages[own + 1];
  return [
    ...(own > 0 && before ? [`← ${link(before)}`] : []),
    ...(own >= 0 ? [`[All pages](${path(file, INDEX)})`] : []),
    ...(after ? [`${link(after)} →`] : []),
  ].join(" · ");
}

function titleOf(folder: string, file: string): string {
  const [, title] = /^# (.+)$/m.exec(readFileSync(join(folder, file), "utf8")) ?? [];
  if (title === undefined) throw new Error(`docs/${file} has no title: its first line should be "# …"`);
  return title;
}

const block = (name: string, line: string) => `<!-- begin ${name} -->\n${line}\n<!-- end ${name} -->`;
const path = (from: string, to: string) => relative(dirname(from), to);
const capital = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);
