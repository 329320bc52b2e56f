import type { TaskStore } from "../../../shared/ports/store.ts";
import { type Random, random } from "../../sim/world/random.ts";
import type { Recorded } from "./compare.ts";
import { Answered, type Seen, type StoreStep, storeAnswer } from "./store-steps.ts";

const STEPS = 80;
const IDS = ["t1", "t2", "t3", "t4", "t5"];
const NAMES = ["n1", "n2", "n3"];

/**
 * Makes steps up on one store, which says what to expect of another. `begin`: when its first writer writes. What is due is
 * asked for in every other recording, and there no write of a task is refused: a bucket's index keeps the time of a write
 * that was.
 */
export async function recordStore(
  store: TaskStore,
  seed: number,
  begin: number,
): Promise<Recorded<StoreStep>[]> {
  const seeded = random(seed, "store");
  const known = new Answered();
  const recorded: Recorded<StoreStep>[] = [];
  for (let i = 0; i < STEPS; i++) {
    const step = stepOf(seeded, begin + 7 * i, known, seed % 2 === 0);
    recorded.push({ step, answer: await storeAnswer(store, step, known) });
  }
  return recorded;
}

function stepOf(seeded: Random, at: number, known: Answered, isOrderly: boolean): StoreStep {
  const id = seeded.pick(IDS);
  const name = seeded.pick(NAMES);
  const agent = seeded.pick(["a", "b"]);
  const limit = 1 + seeded.int(6);
  const text = `${name} ${seeded.int(3)}`;
  const kind = seeded.next();
  if (kind < 0.12 && !(isOrderly && known.has(id))) return { do: "create", id, agent, at };
  if (kind < 0.34) return { do: "replace", id, seen: isOrderly ? "last" : seen(seeded, known), at };
  if (kind < 0.4) return { do: "put head", id, seen: seen(seeded, known), at };
  if (kind < 0.47) return { do: "put record", name, text, seen: seen(seeded, known) };
  if (kind < 0.5) return { do: "put part", id: "t1", name, text };
  if (kind < 0.53) return { do: "put text", name, text };
  if (kind < 0.55) return { do: seeded.pick(["remove texts", "remove parts"] as const), name };
  if (kind < 0.6) return { do: "get", of: id };
  if (kind < 0.63) return { do: "get head", of: id };
  if (kind < 0.71) return { do: seeded.pick(["get record", "get text", "get part"] as const), of: name };
  if (kind < 0.75) return { do: "get many", ids: [id, seeded.pick(IDS), "nobody", seeded.pick(IDS)] };
  if (kind < 0.83 && isOrderly) {
    const state = seeded.pick(["scheduled", "scheduled", "dispatched"] as const);
    const until = at + (seeded.chance(0.5) ? seeded.int(600) : 100_000);
    return { do: "due", agent, state, until, limit };
  }
  if (kind < 0.89) {
    const state = seeded.pick(["scheduled", "dispatched"] as const);
    return { do: "list", limit, ...(seeded.chance(0.5) && { agent }), ...(seeded.chance(0.5) && { state }) };
  }
  if (known.cursors.length === 0 || kind < 0.93) return { do: "position" };
  return { do: "changes", limit, ...(seeded.chance(0.7) && { from: seeded.int(100) }) };
}

/** Mostly what its writer saw last; now and then what is stale, another's, or nothing. */
function seen(seeded: Random, { revisions }: Answered): Seen {
  if (revisions.length === 0 || seeded.chance(0.65)) return "last";
  return seeded.chance(0.2) ? "none" : seeded.int(revisions.length);
}
