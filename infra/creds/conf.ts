import { type AgentAccount, ANSWERS, type Identity, type Plan, type Service } from "./plan.ts";

/** Passwords by identity. */
export type Passwords = ReadonlyMap<string, string>;

export const userOf = (core: string, identity: string) => `${core.toLowerCase()}-${identity}`;

/** For a server's configuration: `include "nats.conf"`. */
export function confOf({ core, agents }: Plan, passwords: Passwords): string {
  const user = (identity: Identity) => userText(core.name, identity, passwords);
  return `# Written by pawl creds. Include it in the server's configuration; it has passwords.
accounts {
  ${quoted(core.name)} {
    jetstream: enabled
    users: [
${core.identities.map(user).join("\n")}
    ]
    exports: [
${exportsOf(agents)
  .map(({ to, ...service }) => offered(service, to))
  .join("\n")}
    ]
    imports: [
${agents
  .flatMap(({ name, exports }) =>
    exports.map(
      ({ subject }) => `      { service: { account: ${quoted(name)}, subject: ${quoted(subject)} } }`,
    ),
  )
  .join("\n")}
    ]
  }
${agents.map((agent) => accountText(core.name, agent, user(agent.identity))).join("\n")}
}
`;
}

/** What several agents are given is exported once, to all of them. */
export function exportsOf(
  agents: readonly AgentAccount[],
): readonly { readonly subject: string; readonly isStream: boolean; readonly to: readonly string[] }[] {
  const all = agents.flatMap(({ name, imports }) => imports.map((service) => ({ name, service })));
  return [...Map.groupBy(all, ({ service }) => service.subject)].map(([subject, given]) => ({
    subject,
    isStream: given.some(({ service }) => service.isStream),
    to: given.map(({ name }) => name),
  }));
}

function accountText(core: string, { name, imports, exports }: AgentAccount, user: string): string {
  const service = ({ subject, local }: Service) => {
    const to = local === subject ? "" : `, to: ${quoted(local)}`;
    return `      { service: { account: ${quoted(core)}, subject: ${quoted(subject)} }${to} }`;
  };
  return `  ${quoted(name)} {
    users: [
${user}
    ]
    imports: [
${imports.map(service).join("\n")}
    ]
    exports: [
${exports.map((one) => offered(one, [core])).join("\n")}
    ]
  }`;
}

function offered(
  { subject, isStream }: Pick<Service, "subject" | "isStream">,
  to: readonly string[],
): string {
  const response = isStream ? ", response_type: stream" : "";
  return `      { service: ${quoted(subject)}, accounts: ${list(to)}${response} }`;
}

function userText(
  core: string,
  { name, publish, denied, subscribe, answers }: Identity,
  passwords: Passwords,
): string {
  const deny = denied.length > 0 ? `, deny: ${list(denied)}` : "";
  return `      {
        user: ${quoted(userOf(core, name))}, password: ${quoted(passwords.get(name) as string)}
        permissions: {
          publish: { allow: ${list(publish)}${deny} }
          subscribe: { allow: ${list(subscribe)} }${answers ? `\n          allow_responses: { max: ${ANSWERS.most}, expires: "${ANSWERS.seconds}s" }` : ""}
        }
      }`;
}

const quoted = (text: string) => JSON.stringify(text);
const list = (all: readonly string[]) => `[${all.map(quoted).join(", ")}]`;
