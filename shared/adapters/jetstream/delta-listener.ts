import type { Msg, NatsConnection } from "@nats-io/nats-core";
import { type DeltaListener, MOST_TOLD } from "../../ports/deltas.ts";
import type { Settings } from "../../settings/settings.ts";
import { deltaSubject } from "../../task/names.ts";
import { inboxOf, isNobody } from "./requests.ts";

/** A holder forgets who has not asked for three times as long. */
const ASK_EVERY = 5_000;
/** Without an answer: of a holder that has not begun its first turn, or is dead. */
const ASK_AGAIN = 1_000;
/** Turns at once in one task. */
const MOST_TURNS = 100;

interface Said {
  readonly n: number;
  readonly key: string;
  readonly at: number;
  readonly text: string;
}

/**
 * Asks at the place of the claim's holder, with an inbox of its own, and again every few seconds: a holder that is gone is
 * asked for nothing, and one that has lost its connection begins anew.
 */
export function deltaListener(nc: NatsConnection, settings: Settings): DeltaListener {
  return {
    hear: (claim, heard) => {
      const subject = deltaSubject(settings, claim);
      const id = crypto.randomUUID();
      /** How much of each turn was heard. */
      const known = new Map<number, number>();
      let timer: ReturnType<typeof setTimeout> | undefined;
      let isLost = false;
      let isAnswered = false;

      const ask = () => {
        if (nc.isClosed() || nc.isDraining()) return;
        isAnswered = false;
        arm(ASK_AGAIN);
        nc.publish(subject, JSON.stringify({ token: claim.token, id, anew: isLost }), { reply });
      };
      const arm = (ms: number) => {
        clearTimeout(timer);
        timer = setTimeout(ask, ms);
      };
      const take = ({ n, key, at, text }: Said) => {
        const has = known.get(n) ?? 0;
        if (at > has) {
          // Some got lost on the way: it has to be told from its beginning.
          if (isLost) return;
          isLost = true;
          return ask();
        }
        if (at !== has && at !== 0) return;
        isLost = false;
        if (known.size >= MOST_TURNS) known.clear();
        known.set(n, at + text.length);
        heard({ key, at, text });
      };
      const callback = (error: Error | null, message: Msg) => {
        if (error || isNobody(message)) return;
        if (!isAnswered) arm(ASK_EVERY);
        isAnswered = true;
        const said = saidIn(message);
        if (said) take(said);
      };
      const reply = inboxOf(nc);
      const subscription = nc.subscribe(reply, { callback });
      ask();
      return {
        again: () => {
          if (!isAnswered) ask();
        },
        stop: () => {
          clearTimeout(timer);
          subscription.unsubscribe();
        },
      };
    },
  };
}

/** What comes from a process that runs an agent's code, as far as it is what it should be. */
function saidIn(message: Msg): Said | undefined {
  try {
    const said = JSON.parse(message.string()) as Said;
    const { n, key, at, text } = said;
    const isOne = Number.isInteger(n) && typeof key === "string" && key.length < 1_000;
    return isOne &&
      Number.isInteger(at) &&
      at >= 0 &&
      typeof text === "string" &&
      at + text.length <= MOST_TOLD
      ? said
      : undefined;
  } catch {
    return undefined;
  }
}
