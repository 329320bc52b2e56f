import type { Live } from "../live/live.ts";
import type { Rule } from "../rule.ts";

/** Who may connect to a deployment's servers, and do what there. */
export const accessRules = {
  "anyone-may-connect": {
    checks: "whether NATS asks who connects, where it is on another machine",
    prevents: "Whoever reaches it can read, change and ack every task.",
    severity: "error",
    mend: "Give the server users or accounts: `pawl creds` writes them.",
    find: ({ nats, isLocal }) =>
      nats && !isLocal && !nats.asksWho
        ? {
            field: "NATS_URL",
            is: "NATS asks nobody for an identity",
            set: "pawl creds, and its file in the server's configuration",
          }
        : undefined,
  },
  "permissions-too-wide": {
    checks:
      "what each identity may do at NATS beyond what `pawl creds` gives it, where agents are kept apart: this command's own, and those whose files are here",
    prevents: "PAWL_ISOLATION promises that agents can't reach each other; an identity that may more can.",
    severity: "error",
    mend: "Run `pawl creds` again and reload the server, or take away what is named.",
    find: ({ rights, settings: { isolation } }) =>
      rights.flatMap(({ identity, mayAll, wide }) => {
        const found = (is: string) => ({
          field: identity,
          is,
          set: `the rights of ${identity} as pawl creds writes them`,
        });
        if (mayAll)
          return [found(`PAWL_ISOLATION is ${isolation}, and ${identity} may do everything at NATS`)];
        if (isolation !== "accounts" || wide.length === 0) return [];
        return [found(`${identity} may ${wide.join(", ")}, which pawl creds does not give it`)];
      }),
  },
  "permission-missing": {
    checks:
      "what NATS or the store refuses of what an operator has to ask, and what identities lack of what `pawl creds` gives them",
    prevents:
      "Commands, sweeps and reports fail, or leave out what they can't see; an agent can't take its tasks.",
    severity: "error",
    mend: "Give the identity the right that is named; `pawl creds` writes what each needs, again after agents, lanes or children came.",
    find: ({ refused, rights, settings: { isolation } }) => [
      ...refused.map(({ what, reason }) => ({
        field: what,
        is: `${what}: ${reason}`,
        set: "the right to ask for it",
      })),
      ...rights
        .filter(({ lacks }) => isolation === "accounts" && lacks.length > 0)
        .map(({ identity, lacks }) => ({
          field: identity,
          is: `${identity} may not ${lacks.join(", ")}, which pawl creds gives it`,
          set: `the rights of ${identity} as pawl creds writes them`,
        })),
    ],
  },
} as const satisfies Record<string, Rule<Live>>;
