import { existsSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import type { NatsConnection } from "@nats-io/nats-core";
import { type Config, configFrom } from "../../../functions/wiring/config.ts";
import { connectNats } from "../../../functions/wiring/wire.node.ts";
import { messageOf } from "../../../shared/errors/errors.ts";
import type { Env } from "../../../shared/settings/variable.ts";
import type { KnownAgent } from "../../agents.ts";
import { compare, type Rights } from "../../creds/compare.ts";
import { type Identity, planOf, RIGHTS } from "../../creds/plan.ts";
import type { Seen } from "./ask.ts";

const AT_ONCE = 8;
const OWN = "operator";

export interface Identities {
  readonly nc: NatsConnection;
  readonly env: Env;
  readonly config: Config;
  readonly known: readonly KnownAgent[];
  /** Where `pawl creds` wrote them. */
  readonly creds: string;
}

interface Allowed {
  readonly allow?: readonly string[];
  readonly deny?: readonly string[];
}

/** What a server says of whoever asks it: there is nothing in it of who may do everything. */
interface UserInfo {
  readonly permissions?: {
    readonly publish?: Allowed;
    readonly subscribe?: Allowed;
    readonly responses?: object;
  };
}

/** What the server lets whoever is connected do. Throws where it may not ask. */
export async function rightsAt(nc: NatsConnection): Promise<Rights> {
  const answer = await nc.request(RIGHTS, "", { timeout: 5_000 });
  const { data, error } = answer.json<{ data?: UserInfo; error?: { description?: string } }>();
  if (!data) throw new Error(error?.description ?? "it does not say");
  const { publish, subscribe, responses } = data.permissions ?? {};
  const side = ({ allow, deny = [] }: Allowed = {}) => ({ ...(allow && { allow }), deny });
  return {
    // Who may answer, and was allowed nothing by name, may publish nothing else.
    publish: side(responses && !publish?.allow ? { ...publish, allow: [] } : publish),
    subscribe: side(subscribe),
    answers: responses !== undefined,
  };
}

/**
 * Every identity's rights against what `pawl creds` gives it: this command's own, and those whose files are here, as which
 * it connects. Where agents only have buckets of their own, whether this one may do everything.
 */
export async function lookAtRights(live: Seen, given: Identities, unseen: string[]): Promise<void> {
  const { nc, config, known, creds } = given;
  const { isolation } = config.settings;
  if (isolation === "shared") return;
  const plan = planOf(config.settings, known, config.store === "nats-kv");
  const identities = [...plan.core.identities, ...plan.agents.map(({ identity }) => identity)];
  const own = identities.find(({ name }) => name === OWN) as Identity;
  const look = async (identity: Identity, ask: () => Promise<Rights>) => {
    try {
      const rights = await ask();
      live.rights = [...live.rights, compare(identity, rights)];
    } catch (error) {
      // Who may not even ask has no identity without limits, and nothing else is compared there.
      if (isolation !== "accounts") return;
      unseen.push(`what ${identity.name} may do at NATS: ${messageOf(error)}`);
    }
  };
  await look(own, () => rightsAt(nc));
  if (isolation !== "accounts") return;
  const others = identities.filter(({ name }) => name !== OWN);
  const isHere = ({ name }: Identity) => existsSync(join(creds, `${name}.env`));
  const missing = others.filter((one) => !isHere(one)).map(({ name }) => name);
  if (missing.length > 0)
    unseen.push(`what ${missing.join(", ")} may do at NATS: no file in ${relative(".", creds) || "."}`);
  const left = others.filter(isHere).values();
  const worker = async () => {
    for (const one of left) await look(one, () => rightsAs(given, one));
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  live.rights = live.rights.toSorted((a, b) => a.identity.localeCompare(b.identity));
}

async function rightsAs({ env, creds }: Identities, { name }: Identity): Promise<Rights> {
  // All of NATS but where it is: who this command is must not be mixed with who the file says.
  const rest = Object.fromEntries(Object.entries(env).filter(([key]) => !/^NATS_(?!URL$)/.test(key)));
  const text = readFileSync(join(creds, `${name}.env`), "utf8");
  const lines = text.split("\n").flatMap((line) => {
    const at = line.indexOf("=");
    return at > 0 ? [[line.slice(0, at), line.slice(at + 1).trim()]] : [];
  });
  const nc = await connectNats(configFrom({ ...rest, ...Object.fromEntries(lines) }), { name });
  try {
    return await rightsAt(nc);
  } finally {
    await nc.close();
  }
}
