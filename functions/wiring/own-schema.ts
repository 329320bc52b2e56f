import type { Agent } from "../../shared/agent.ts";
import { messageOf } from "../../shared/errors/errors.ts";
import { type Accepted, acceptedInput } from "../../shared/input.ts";
import type { Log } from "../../shared/ports/log.ts";
import type { JsonObject } from "../../shared/values/json.ts";

/** Longest that a caller waits for an agent's module to load, and for its schema to answer. */
const PATIENCE = 3_000;

type Load = () => Promise<{ readonly default: Agent }>;

/**
 * Asks an agent's own schema, whose code is loaded by the first who asks. Undefined where it can't be asked: its module
 * throws here (it may want a secret that only its own function has), or nothing is answered in time. Then it is for
 * others to say what is surely wrong, and for the run to decide. The log says it once for each reason.
 */
export function ownSchema(
  agent: string,
  load: Load,
  log: Log,
  patience = PATIENCE,
): (input: JsonObject) => Promise<Accepted | undefined> {
  const told = new Set<string>();
  const tell = (reason: string): undefined => {
    if (!told.has(reason)) log("warn", "input.unasked", { agent, reason });
    told.add(reason);
  };
  /** Kept when it is known, and never while it is under way: on some platforms a request can't wait for another's promise. */
  let loaded: { readonly agent?: Agent } | undefined;
  const loadOnce = async (): Promise<{ readonly agent?: Agent }> => {
    try {
      loaded ??= { agent: (await load()).default };
    } catch (error) {
      loaded ??= {};
      tell(`its module threw: ${messageOf(error).slice(0, 300)}`);
    }
    return loaded;
  };
  return async (input) => {
    const known = loaded ?? (await within(patience, loadOnce()));
    if (!known) return tell("its module does not finish loading");
    if (!known.agent) return undefined;
    return (await within(patience, acceptedInput(known.agent, input))) ?? tell("its schema does not answer");
  };
}

/** Undefined when it takes longer. */
async function within<T>(ms: number, work: Promise<T>): Promise<T | undefined> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(resolve, ms, undefined);
  });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}
