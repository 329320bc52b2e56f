interface ScopeRule {
  /** As docs/api.md and `pawl token create --help` say it. */
  readonly allows: string;
  /** Whose tasks a token with it gets to see: its owner's own, or everybody's. */
  readonly sees: "own" | "all";
}

/** What a token can be allowed to do. Which request needs which scope is declared by the routes. */
export const scopes = {
  submit: { allows: "submitting tasks", sees: "own" },
  read: { allows: "reading tasks: the owner's own; everybody's with `operate`", sees: "own" },
  operate: {
    allows: "cancelling, redriving, resolving, signalling and approving; pausing and resuming agents",
    sees: "all",
  },
} as const satisfies Readonly<Record<string, ScopeRule>>;

export type Scope = keyof typeof scopes;

export const scopeNames = Object.keys(scopes) as readonly Scope[];

export const isScope = (text: string): text is Scope => Object.hasOwn(scopes, text);
