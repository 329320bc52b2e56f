import { createAccount, createOperator, createUser, fromSeed, type KeyPair } from "@nats-io/nkeys";
import { messageOf, PawlError } from "../../shared/errors/errors.ts";
import { exportsOf } from "./conf.ts";
import { type AgentAccount, ANSWERS, type Identity, type Plan } from "./plan.ts";

const base64url = (data: string | Uint8Array) => Buffer.from(data).toString("base64url");

const publicKeys = new WeakMap<KeyPair, string>();

/** The key's own would be computed anew each time, which takes milliseconds, and each token names several. */
function publicKeyOf(key: KeyPair): string {
  const known = publicKeys.get(key) ?? key.getPublicKey();
  publicKeys.set(key, known);
  return known;
}

/** NATS's own kind of JWT, signed by the issuer's key. */
export function jwt(issuer: KeyPair, subject: string, type: string, nats: object, name = type): string {
  const header = base64url(JSON.stringify({ typ: "JWT", alg: "ed25519-nkey" }));
  const iat = Math.floor(Date.now() / 1000);
  const claims = { jti: crypto.randomUUID(), iat, iss: publicKeyOf(issuer), name, sub: subject };
  const body = base64url(JSON.stringify({ ...claims, nats: { ...nats, type, version: 2 } }));
  const signature = issuer.sign(new TextEncoder().encode(`${header}.${body}`));
  return `${header}.${body}.${base64url(signature)}`;
}

const makers = { operator: createOperator, account: createAccount, user: createUser };
export type KeyKind = keyof typeof makers;
const LETTER: Readonly<Record<KeyKind, string>> = { operator: "SO", account: "SA", user: "SU" };

export const newSeed = (kind: KeyKind): string => seedOf(makers[kind]());
export const seedOf = (key: KeyPair): string => new TextDecoder().decode(key.getSeed());

/** `file`: where it was read, for whoever has to mend it. */
export function keyOf(seed: string, kind: KeyKind, file: string): KeyPair {
  const text = seed.trim();
  try {
    if (!text.startsWith(LETTER[kind])) throw new Error(`it does not begin with ${LETTER[kind]}`);
    return fromSeed(new TextEncoder().encode(text));
  } catch (error) {
    throw new PawlError("setting_invalid", `${file} has no seed of an ${kind}'s key: ${messageOf(error)}`);
  }
}

/** What a credentials file is made of. */
export function credsText(user: KeyPair, token: string): string {
  return `-----BEGIN NATS USER JWT-----
${token}
------END NATS USER JWT------

-----BEGIN USER NKEY SEED-----
${seedOf(user)}
------END USER NKEY SEED------
`;
}

export const UNLIMITED = { subs: -1, data: -1, payload: -1 };
export const ACCOUNT_LIMITS = {
  ...UNLIMITED,
  imports: -1,
  exports: -1,
  wildcards: true,
  conn: -1,
  leaf: -1,
};
export const STORAGE = { mem_storage: -1, disk_storage: -1, streams: -1, consumer: -1 };

/** Keys by their names: `operator`, `system`, accounts, and identities. */
export type KeyFor = (kind: KeyKind, name: string) => KeyPair;

/** All that a server with an operator needs, and a credentials file for each identity. */
export interface Signed {
  readonly conf: string;
  readonly accounts: Readonly<Record<string, string>>;
  readonly creds: Readonly<Record<string, string>>;
}

/**
 * What the core gives is given by name: each import has a token for that account alone, so another account of the same
 * operator can't import it.
 */
export function signed({ core, agents }: Plan, keyFor: KeyFor): Signed {
  const operator = keyFor("operator", "operator");
  const system = keyFor("account", "system");
  const owner = keyFor("account", core.name);
  const of = (agent: AgentAccount) => keyFor("account", agent.name);
  const given = (by: KeyPair, to: KeyPair, subject: string) => ({
    name: subject,
    subject,
    type: "service",
    account: publicKeyOf(by),
    token: jwt(by, publicKeyOf(to), "activation", { subject, kind: "service" }),
  });
  const offered = (subject: string, isStream = false) => ({
    name: subject,
    subject,
    type: "service",
    token_req: true,
    response_type: isStream ? "Stream" : "Singleton",
  });
  const account = (key: KeyPair, name: string, nats: object) =>
    jwt(operator, publicKeyOf(key), "account", nats, name);
  const accounts: Record<string, string> = {
    system: account(system, "system", { limits: UNLIMITED }),
    [core.name]: account(owner, core.name, {
      limits: { ...ACCOUNT_LIMITS, ...STORAGE },
      exports: exportsOf(agents).map(({ subject, isStream }) => offered(subject, isStream)),
      imports: agents.flatMap((agent) =>
        agent.exports.map(({ subject }) => given(of(agent), owner, subject)),
      ),
    }),
  };
  for (const agent of agents) {
    const key = of(agent);
    accounts[agent.name] = account(key, agent.name, {
      limits: ACCOUNT_LIMITS,
      exports: agent.exports.map(({ subject, isStream }) => offered(subject, isStream)),
      imports: agent.imports.map(({ subject, local }) => ({
        ...given(owner, key, subject),
        ...(local !== subject && { local_subject: local }),
      })),
    });
  }
  const creds = (by: KeyPair, identity: Identity): [string, string] => {
    const { name, publish, denied, subscribe, answers } = identity;
    const user = keyFor("user", name);
    const rights = {
      pub: { allow: publish, ...(denied.length > 0 && { deny: denied }) },
      sub: { allow: subscribe },
      ...(answers && { resp: { max: ANSWERS.most, ttl: ANSWERS.seconds * 1_000_000_000 } }),
    };
    return [name, credsText(user, jwt(by, publicKeyOf(user), "user", { ...UNLIMITED, ...rights }, name))];
  };
  const preload = Object.entries(accounts).map(
    ([name, token]) => `  ${publicKeyOf(keyFor("account", name))}: ${token}`,
  );
  return {
    conf: `# Written by pawl creds. Include it in the server's configuration.
operator: ${jwt(operator, publicKeyOf(operator), "operator", {})}
system_account: ${publicKeyOf(system)}
resolver: MEMORY
resolver_preload: {
${preload.join("\n")}
}
`,
    accounts,
    creds: Object.fromEntries([
      ...core.identities.map((one) => creds(owner, one)),
      ...agents.map((agent) => creds(of(agent), agent.identity)),
    ]),
  };
}
