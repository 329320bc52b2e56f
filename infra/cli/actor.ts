import { hostname, userInfo } from "node:os";
import type { Actor } from "../../shared/ports/actor.ts";
import type { Env } from "../../shared/settings/variable.ts";
import { readVariable } from "../../shared/settings/variables.ts";

/** Who calls a command, for histories and the audit trail: PAWL_ACTOR, or the user of this machine. */
export function commandActor(env: Env = process.env): Actor {
  const name = readVariable(env, "PAWL_ACTOR") ?? `${userName()}@${hostname()}`;
  return { name: name.replaceAll(/[^\w.@-]/g, "_").slice(0, 128), via: "cli" };
}

/** A container may run under a number that has no name. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid-${process.getuid?.() ?? "unknown"}`;
  }
}
