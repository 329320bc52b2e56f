import { PawlError } from "../../shared/errors/errors.ts";
import type { Log } from "../../shared/ports/log.ts";
import type { Env } from "../../shared/settings/variable.ts";
import { rows } from "../../shared/settings/variables.ts";
import { type Redact, redactor } from "../../shared/values/redact.ts";

/** Before anything is claimed: a task must not lose its attempts to what its author can't mend by code. */
export function checkSecrets(agent: string, declared: readonly string[], env: Env): void {
  const missing = declared.filter((name) => !env[name]);
  if (missing.length > 0)
    throw new PawlError(
      "secret_missing",
      `${agent} declares ${missing.join(", ")} in its secrets, and ${missing.length > 1 ? "they are" : "it is"} not set here`,
    );
}

/** Of Pawl's own secrets and of those that an agent declares. */
export function redactorOf(declared: readonly string[], env: Env): Redact {
  const own = rows.flatMap(([name, { secret, form }]) => {
    const value = env[name];
    // The path of a file is none, and helps whoever reads why it could not be read.
    const isPath = form.startsWith("the path") && !/BEGIN|^\s*\{/.test(value ?? "");
    return secret && value && !isPath ? [[name, value] as const] : [];
  });
  return redactor(Object.fromEntries([...own, ...declared.map((name) => [name, env[name]] as const)]));
}

/** The same log, in which no secret is shown. */
export function redacted(log: Log, redact: Redact): Log {
  return (level, event, fields = {}) => {
    const shown = Object.entries(fields).map(([key, value]) => [
      key,
      typeof value === "string" ? redact(value) : value,
    ]);
    log(level, event, Object.fromEntries(shown));
  };
}
