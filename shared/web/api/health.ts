import { queueOf } from "../../dispatch/dispatch.ts";
import { isPawlError, messageOf } from "../../errors/errors.ts";
import type { Deps } from "../../ports/deps.ts";
import type { Fill } from "../../ports/store.ts";
import { isNearlyFull, refusing, storeFill } from "../../quota/pressure.ts";
import { mayUse } from "../authorize.ts";
import type { Request, WebAgent } from "../context.ts";
import { problem } from "../problem.ts";

/** What was found is good for so long: however many ask, the servers are asked once. What is wrong is looked at sooner. */
const KEPT = 5_000;
const KEPT_WRONG = 1_000;
/** Who finds a check under way waits for it, and then no longer. */
const LONGEST_CHECK = 20_000;
const LOOK_EVERY = 50;
const RECORD = "health";
/** Whether writes are taken is tried no more often than this: each costs one. */
const WRITE_EVERY = 30_000;

interface Health {
  readonly at: number;
  /** What is wrong: for everyone, and for who has a token. */
  readonly wrong?: {
    readonly code: "unhealthy" | "store_full" | "queue_full";
    readonly told: string;
    readonly detail: string;
  };
  /** How full that is where each agent's documents are, of which has an end: one bucket of all, or each one's own. */
  readonly stores?: readonly Filled[];
  /** Agents whose queue or bucket is so nearly full that their submits are refused: others' are taken. */
  readonly refusing?: readonly string[];
}

interface Filled {
  readonly name: string;
  readonly fill: Fill;
}

interface Checks {
  last?: Health;
  /** When the store last took a write. */
  wroteAt?: number;
  /** Since when somebody checks. */
  checking?: number;
}

/** One for each app, by its list of agents. */
const all = new WeakMap<readonly WebAgent[], Checks>();

/**
 * Whether NATS and the store answer and take writes, and submits are taken. Where they are is not for everyone, nor which
 * agent's submits are refused while others' are taken.
 */
export async function health(
  c: Request,
  { agents }: { readonly agents: readonly WebAgent[] },
): Promise<Response> {
  const { wrong, stores = [], refusing: agentsRefused = [] } = await current(c, agents);
  const token = c.get("token");
  if (wrong) return problem(wrong.code, token ? wrong.detail : wrong.told);
  const store = token && fullest(stores.filter(({ name }) => mayUse(token, name)));
  const mine = token ? agentsRefused.filter((name) => mayUse(token, name)) : [];
  return c.json({
    ok: true,
    ...(store && { store }),
    ...(mine.length > 0 && { refusing: mine }),
  });
}

/**
 * The last check, or a new one: one at a time. Who waits for another's looks at what that left, not at its promise: on some
 * platforms what one request awaits is lost with it.
 */
async function current(c: Request, agents: readonly WebAgent[]): Promise<Health> {
  const checks = all.get(agents) ?? {};
  all.set(agents, checks);
  for (;;) {
    const now = Date.now();
    const { last, checking } = checks;
    if (last && now - last.at < (last.wrong ? KEPT_WRONG : KEPT)) return last;
    if (checking === undefined || now - checking >= LONGEST_CHECK) break;
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY));
  }
  checks.checking = Date.now();
  try {
    const found = await check(c, agents, checks);
    checks.last = found;
    return found;
  } finally {
    delete checks.checking;
  }
}

async function check(c: Request, agents: readonly WebAgent[], checks: Checks): Promise<Health> {
  try {
    const deps = await c.env.open();
    await probe(deps, checks);
    const [stores, queues] = await Promise.all([storesOf(deps, agents), queuesOf(deps, agents)]);
    const at = Date.now();
    const told = "submits are refused, or soon will be; what was accepted goes on";
    // Said as soon as the largest task would be refused.
    const isFull = (fill: Fill | undefined) =>
      fill !== undefined && isNearlyFull(fill, deps.settings.inputLimit);
    const fullStores = new Set(stores.filter(({ fill }) => isFull(fill)).map(({ name }) => name));
    const store = fullest(stores);
    // One agent's trouble is not the others'; but where nobody's submit is taken, not all is well.
    if (store && fullStores.size === agents.length) {
      const detail = `${deps.store.name} has ${refusing(store)}`;
      return { at, stores, wrong: { code: "store_full", told: `The store is nearly full: ${told}`, detail } };
    }
    const full = queues.filter(({ name, fill }) => fullStores.has(name) || isFull(fill));
    const names = [...new Set(full.map(({ name }) => name))];
    if (full.length > 0 && full.length === queues.length) {
      const all = `All queues are nearly full: ${told}`;
      return { at, wrong: { code: "queue_full", told: all, detail: `${all} (${names.join(", ")})` } };
    }
    return { at, stores, refusing: names };
  } catch (error) {
    const detail = messageOf(error);
    c.env.log("error", "health.failed", { reason: detail });
    const told = "NATS or the store does not answer. See the function's log";
    return { at: Date.now(), wrong: { code: "unhealthy", told, detail: isPawlError(error) ? detail : told } };
  }
}

/** A store may answer and take nothing: its disk is full, or its permissions are gone. Refused is an answer too. */
async function probe({ store }: Deps, checks: Checks): Promise<void> {
  const found = await store.getRecord(RECORD);
  const now = Date.now();
  if (now - (checks.wroteAt ?? 0) < WRITE_EVERY) return;
  await store.putRecord(RECORD, String(now), found?.revision);
  checks.wroteAt = now;
}

/** Asks JetStream how full the queues of all agents are, which fails where it is away or off. */
async function queuesOf(deps: Deps, agents: readonly WebAgent[]) {
  const queues = agents.flatMap(({ name, lanes }) =>
    Array.from({ length: lanes }, (_, lane) => ({ name, queue: queueOf(deps, { agent: name, lane }) })),
  );
  return Promise.all(queues.map(async ({ name, queue }) => ({ name, fill: await deps.bus.usage?.(queue) })));
}

/** Of an agent with a bucket of its own, that one's. */
async function storesOf(deps: Deps, agents: readonly WebAgent[]): Promise<Filled[]> {
  const fills = agents.map(async ({ name }) => ({ name, fill: await storeFill(deps, name) }));
  return (await Promise.all(fills)).filter((one): one is Filled => one.fill !== undefined);
}

function fullest(stores: readonly Filled[]): Fill | undefined {
  return stores.map(({ fill }) => fill).toSorted((a, b) => b.bytes / b.limit - a.bytes / a.limit)[0];
}
