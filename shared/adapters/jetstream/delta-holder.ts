import type { Msg, NatsConnection } from "@nats-io/nats-core";
import type { HeldClaim } from "../../ports/bus.ts";
import { type DeltaHolder, MOST_TOLD } from "../../ports/deltas.ts";
import type { Settings } from "../../settings/settings.ts";
import { deltaSubject } from "../../task/names.ts";

/** Nobody reads faster. */
const EVERY = 100;
/** Whoever listens asks again before that. */
const ASKED_FOR = 15_000;
/** Messages for one asking, which NATS permissions count too. */
const MOST_ANSWERS = 250;
const MOST_LISTENERS = 64;
/** Characters in one message. */
const AT_ONCE = 16_000;

interface Listener {
  readonly token: string;
  readonly reply: string;
  readonly until: number;
  left: number;
  /** How far it was told, by turn. */
  readonly told: Map<Turn, number>;
}

interface Turn {
  readonly n: number;
  readonly key: string;
  readonly said: () => string | undefined;
}

/**
 * Deltas are answers to a question: they go to the inbox of whoever asked, and to nobody else. Whoever asked is forgotten
 * unless they ask again, and with the connection: so what waits to be sent on a slow one is no more than one asking is worth.
 */
export function deltaHolder(nc: NatsConnection, settings: Settings): DeltaHolder {
  const turns = new Map<string, Set<Turn>>();
  const listeners = new Map<string, Listener>();
  /** Where questions are heard, or would be if this user had the right: that may be there with the next connection. */
  const places = new Map<string, "heard" | "refused" | "unheard">();
  let timer: ReturnType<typeof setInterval> | undefined;
  let n = 0;

  const tell = (listener: Listener, turn: Turn, whole: string) => {
    const most = Math.min(whole.length, MOST_TOLD);
    let at = listener.told.get(turn) ?? 0;
    while (at < most && listener.left > 0) {
      const text = whole.slice(at, Math.min(at + AT_ONCE, most));
      nc.publish(listener.reply, JSON.stringify({ n: turn.n, key: turn.key, at, text }));
      listener.left--;
      at += text.length;
      listener.told.set(turn, at);
    }
  };
  const tellAll = (token: string, some: Iterable<Turn>, whole?: string): boolean => {
    const mine = [...listeners.values()].filter((one) => one.token === token);
    if (mine.length === 0) return false;
    try {
      for (const turn of some) {
        const said = whole ?? turn.said() ?? "";
        for (const listener of mine) tell(listener, turn, said);
      }
    } catch {
      // The connection is being closed: nobody hears the rest.
    }
    return true;
  };
  const look = () => {
    const now = performance.now();
    for (const [id, { until }] of listeners) if (until <= now) listeners.delete(id);
    let isHeard = false;
    for (const [token, some] of turns) isHeard = tellAll(token, some) || isHeard;
    if (isHeard) return;
    clearInterval(timer);
    timer = undefined;
  };
  const watch = () => {
    if (timer !== undefined || turns.size === 0 || listeners.size === 0) return;
    timer = setInterval(look, EVERY);
  };

  const asked = ({ reply, data }: Msg) => {
    const { token, id, anew } = JSON.parse(new TextDecoder().decode(data)) as Record<string, unknown>;
    if (!reply || typeof token !== "string" || typeof id !== "string") return;
    const before = listeners.get(id);
    if (!before && listeners.size >= MOST_LISTENERS) return;
    const told = (!anew && before?.told) || new Map<Turn, number>();
    listeners.set(id, { token, reply, told, until: performance.now() + ASKED_FOR, left: MOST_ANSWERS });
    // So that they know that somebody is there. Between accounts an empty answer would be the last one.
    nc.publish(reply, "{}");
    watch();
  };
  /** From the first turn on, and before its intent is stored: a runner that asks no model does not listen. */
  const listen = (claim: HeldClaim) => {
    const place = deltaSubject(settings, claim);
    if ((places.get(place) ?? "unheard") !== "unheard" || nc.isClosed()) return;
    if (places.size === 0) void forgetWhereCut();
    places.set(place, "heard");
    const callback = (error: Error | null, message: Msg) => {
      try {
        if (error) places.set(place, "refused");
        else asked(message);
      } catch {
        // No question of ours.
      }
    };
    nc.subscribe(place, { callback });
  };
  const forgetWhereCut = async () => {
    for await (const { type } of nc.status()) {
      if (type !== "disconnect") continue;
      listeners.clear();
      for (const [place, is] of places) if (is === "refused") places.set(place, "unheard");
    }
  };

  return {
    listen,
    say: ({ token }, key, said) => {
      const turn: Turn = { n: ++n, key, said };
      const some = turns.get(token) ?? new Set();
      turns.set(token, some.add(turn));
      watch();
      return (whole) => {
        if (whole !== undefined) tellAll(token, [turn], whole);
        for (const { told } of listeners.values()) told.delete(turn);
        some.delete(turn);
        if (some.size === 0) turns.delete(token);
      };
    },
  };
}
