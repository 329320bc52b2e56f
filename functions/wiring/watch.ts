import type { NatsConnection, Status } from "@nats-io/nats-core";
import { tooOld } from "../../shared/adapters/jetstream/nats-version.ts";
import { messageOf } from "../../shared/errors/errors.ts";
import { systemClock } from "../../shared/ports/clock.ts";
import type { Log } from "../../shared/ports/log.ts";
import { trouble } from "../../shared/retry/trouble.ts";
import { isAuth } from "./connect.ts";

/**
 * Says in the log when NATS is away, refuses us or is too old, until it is over: the client tries again in silence, for
 * ever. Ends with the connection.
 */
export async function watchNats(nc: NatsConnection, log: Log): Promise<void> {
  const away = trouble({ clock: systemClock, log });
  const outdated = trouble({ clock: systemClock, log });
  let isAway = false;
  let server = nc.getServer();
  /** The server's own words, to the try to connect that is under way and to the one before. */
  let words: (string | undefined)[] = [];
  let told: string | undefined;
  let timer: ReturnType<typeof setInterval> | undefined;

  const tell = () => {
    const why = words.find((one) => one !== undefined);
    if (isAway)
      away.met("nats.away", { server, reason: shown(why) }, { isNews: why !== undefined && why !== told });
    else away.over("nats.back", { server });
    told = why;
    const problem = tooOld(nc);
    if (problem) outdated.met("nats.too-old", { server, reason: problem.message }, { level: "error" });
    else if (!isAway) outdated.over("nats.new-enough", { server });
    if (!isAway && !problem) {
      clearInterval(timer);
      timer = undefined;
    } else timer ??= setInterval(tell, 1_000);
  };
  const heard = (status: Status) => {
    switch (status.type) {
      case "disconnect":
      case "reconnect":
        isAway = status.type === "disconnect";
        server = status.server;
        if (!isAway) words = [];
        return tell();
      case "reconnecting":
        words = [undefined, words[0]];
        return;
      case "error":
        // One request that is not allowed is its caller's affair.
        if (status.error.name === "PermissionViolationError") return;
        words = [messageOf(status.error), words[1]];
        return tell();
      default:
        return;
    }
  };
  try {
    for await (const status of nc.status()) heard(status);
  } finally {
    clearInterval(timer);
  }
}

function shown(why: string | undefined): string {
  if (why === undefined) return "the connection is lost";
  return isAuth(why)
    ? `it refuses the identity: ${why}. Check NATS_CREDS, or NATS_USER and NATS_PASSWORD`
    : `it ended the connection: ${why}`;
}
