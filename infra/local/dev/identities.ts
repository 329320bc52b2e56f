import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Settings } from "../../../shared/settings/settings.ts";
import { planOf } from "../../creds/plan.ts";
import { writeCreds } from "../../creds/write.ts";
import type { LocalNats } from "../nats-server.ts";
import type { DevAgent } from "./changes/plan.ts";

type Values = Readonly<Record<string, string>>;

/** How long the server may take until it has read its configuration anew. */
const RELOADED_WITHIN = 5_000;

/** An identity for each function and agent, as in production: what one may not do fails here first. */
export interface Identities {
  /** Lines for the server's configuration. */
  readonly config: string;
  /** What an identity has in its environment. */
  of(name: string): Values;
}

/** Keys in the folder are kept from one dev to the next. */
export async function identitiesIn(
  folder: string,
  settings: Settings,
  agents: readonly Pick<DevAgent, "name" | "lanes" | "children">[],
  hasKv: boolean,
): Promise<Identities> {
  const plan = planOf(settings, agents, hasKv);
  const { include, identities } = await writeCreds({ plan, format: "conf", folder });
  const values = new Map<string, Values>();
  for (const [name, file] of Object.entries(identities))
    values.set(name, parsed(await readFile(join(folder, file), "utf8")));
  return {
    config: await readFile(join(folder, include), "utf8"),
    of: (name) => values.get(name) ?? {},
  };
}

/**
 * Has the server know others, and waits until it does. Twice: an account that comes by a reload is given what it imports by
 * the next one.
 */
export async function reload(nats: LocalNats, config: string): Promise<void> {
  await loaded(nats, config);
  await loaded(nats, `${config}\n# again\n`);
}

async function loaded(nats: LocalNats, config: string): Promise<void> {
  const loadedAt = async () => {
    const answer = await fetch(`${nats.monitorUrl}/varz`);
    return ((await answer.json()) as { config_load_time: string }).config_load_time;
  };
  const before = await loadedAt();
  await nats.reload(config);
  const until = Date.now() + RELOADED_WITHIN;
  while (Date.now() < until && (await loadedAt()) === before)
    await new Promise((resolve) => setTimeout(resolve, 20));
}

function parsed(text: string): Values {
  const lines = text.split("\n").filter((line) => line.includes("="));
  return Object.fromEntries(
    lines.map((line) => {
      const at = line.indexOf("=");
      return [line.slice(0, at), line.slice(at + 1)];
    }),
  );
}
