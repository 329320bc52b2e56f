/** Who asked for something, and which way it came. */
export interface Actor {
  /** The owner of the token; of a command, who called it. */
  readonly name: string;
  /** The token's public id. */
  readonly token?: string;
  readonly via: "api" | "dashboard" | "cli";
}

/** As a task's history has it: "ann via api (tok_0123456789abcdef)". */
export function sayActor({ name, token, via }: Actor): string {
  return `${name} via ${via}${token === undefined ? "" : ` (${token})`}`;
}
