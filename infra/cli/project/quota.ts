import type { Command } from "commander";
import type { Config } from "../../../functions/wiring/config.ts";
import { type Wired, wire } from "../../../functions/wiring/wire.node.ts";
import { setQuota } from "../../../shared/audit/operations.ts";
import { readSpent } from "../../../shared/meter/spent.ts";
import { usageOf } from "../../../shared/quota/admit.ts";
import {
  isSplit,
  quotaOf,
  readQuotas,
  readSubject,
  type Subject,
  shownSubject,
} from "../../../shared/quota/quotas.ts";
import {
  partNames,
  type Quota,
  type QuotaPart,
  quotaParts,
  readPart,
  showQuota,
} from "../../../shared/settings/quota.ts";
import { commandActor } from "../actor.ts";
import { columns } from "../columns.ts";
import { logger, say, sayJson } from "../output.ts";

const WHOSE = "owner:<name> or agent:<name>";

/** What one of them may take, and has taken. */
interface Shown {
  readonly of: string;
  readonly quota: Quota;
  /** Not of a queue: an owner has a share of each. */
  readonly used: { readonly [P in Exclude<QuotaPart, "queue">]: number };
}

export function addQuota(program: Command, config: () => Config): void {
  const quotas = program
    .command("quota")
    .description("what owners and agents may take: tasks, bytes, submits a minute, dollars a day");

  const set = quotas
    .command("set")
    .description("set parts of a quota; the others stay as they are")
    .argument("<subject>", WHOSE);
  for (const name of partNames)
    set.option(`--${name} <most>`, `${quotaParts[name].means}: ${quotaParts[name].form}, or none`);
  set
    .option("--json", "answer in JSON")
    .addHelpText("after", "\nExample:\n  pawl quota set owner:web-shop --tasks 1000 --bytes 64MB --usd 20")
    .action(async (text: string, options: { json?: boolean } & Record<string, string>, command: Command) => {
      const subject = readSubject(text);
      const given = partNames.filter((name) => options[name] !== undefined);
      if (given.length === 0)
        command.error(`Say what to limit: ${partNames.map((name) => `--${name}`).join(", ")}`);
      const quota = Object.fromEntries(given.map((name) => [name, readPart(name, options[name] as string)]));
      await using deps = await wire(config(), logger(options.json ?? false));
      const all = await setQuota({ ...deps, actor: commandActor() }, subject, quota);
      tell(options.json, await shownOf(deps, subject, all));
    });

  quotas
    .command("clear")
    .description("forget what was set: the settings' quota holds again")
    .argument("<subject>", WHOSE)
    .option("--json", "answer in JSON")
    .addHelpText("after", "\nExample:\n  pawl quota clear owner:web-shop")
    .action(async (text: string, { json }: { json?: boolean }) => {
      const subject = readSubject(text);
      await using deps = await wire(config(), logger(json ?? false));
      const all = await setQuota({ ...deps, actor: commandActor() }, subject, undefined);
      tell(json, await shownOf(deps, subject, all));
    });

  quotas
    .command("ls")
    .description("list quotas that were set, or those of the named, with what is used of them")
    .argument("[subjects...]", WHOSE)
    .option("--json", "answer in JSON")
    .addHelpText("after", "\nExample:\n  pawl quota ls\n  pawl quota ls owner:web-shop")
    .action(async (texts: string[], { json = false }: { json?: boolean }) => {
      const named = texts.map(readSubject);
      await using deps = await wire(config(), logger(json));
      const all = await readQuotas(deps.store);
      const subjects = named.length > 0 ? named : Object.keys(all).sort().map(readSubject);
      const shown = await Promise.all(subjects.map((subject) => shownOf(deps, subject, all)));
      const { ownerQuota, agentQuota } = deps.settings;
      if (json) sayJson({ quotas: shown, defaults: { owner: ownerQuota, agent: agentQuota } });
      else {
        say(`others: owners ${showQuota(ownerQuota)}, agents ${showQuota(agentQuota)}`);
        if (shown.length > 0) for (const line of table(shown, deps.settings)) say(line);
      }
    });
}

function tell(json: boolean | undefined, shown: Shown): void {
  if (json) sayJson(shown);
  else say(`${shown.of}: ${showQuota(shown.quota)}`);
}

async function shownOf(
  deps: Wired,
  subject: Subject,
  all: Awaited<ReturnType<typeof readQuotas>>,
): Promise<Shown> {
  const now = deps.clock.now();
  const [usage, spent] = await Promise.all([usageOf(deps, subject), readSpent(deps.store, now)]);
  const usd = (subject.kind === "owner" ? spent.owners : spent.agents).get(subject.name) ?? 0;
  return { of: shownSubject(subject), quota: quotaOf(deps, all, subject), used: { ...usage, usd } };
}

function table(all: readonly Shown[], settings: Wired["settings"]): readonly string[] {
  // A share of a bucket is of each agent's, where they have their own.
  const isOfEach = (limit: Quota["bytes"], of: string) =>
    typeof limit === "string" && isSplit(settings, readSubject(of));
  return columns(
    ["of", ...partNames],
    all.map(({ of, quota, used }) => [
      of,
      ...partNames.map((name) => {
        const limit = quota[name];
        if (limit === undefined || limit === null) return "-";
        if (name === "queue" || isOfEach(limit, of)) return `${limit} of each`;
        const is = name === "usd" ? used.usd.toFixed(2) : String(Math.ceil(used[name]));
        return `${is} of ${limit}`;
      }),
    ]),
  );
}
