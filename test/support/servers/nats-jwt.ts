import { createAccount, createOperator, createUser, type KeyPair } from "@nats-io/nkeys";

const base64url = (data: string | Uint8Array) => Buffer.from(data).toString("base64url");

/** NATS's own kind of JWT, signed by the issuer's key. */
function jwt(issuer: KeyPair, subject: KeyPair, type: string, nats: object): string {
  const header = base64url(JSON.stringify({ typ: "JWT", alg: "ed25519-nkey" }));
  const iat = Math.floor(Date.now() / 1000);
  const claims = {
    jti: crypto.randomUUID(),
    iat,
    iss: issuer.getPublicKey(),
    name: type,
    sub: subject.getPublicKey(),
  };
  const body = base64url(JSON.stringify({ ...claims, nats: { ...nats, type, version: 2 } }));
  const signature = issuer.sign(new TextEncoder().encode(`${header}.${body}`));
  return `${header}.${body}.${base64url(signature)}`;
}

const UNLIMITED = { subs: -1, data: -1, payload: -1 };

/** A server's configuration with one account, and a credentials file for a user of it. */
export function credentials(): { config: string; creds: string } {
  const [operator, system, account, user] = [
    createOperator(),
    createAccount(),
    createAccount(),
    createUser(),
  ];
  const storage = { mem_storage: -1, disk_storage: -1, streams: -1, consumer: -1 };
  const limits = { ...UNLIMITED, imports: -1, exports: -1, wildcards: true, conn: -1, leaf: -1, ...storage };
  const userJwt = jwt(account, user, "user", UNLIMITED);
  const seed = new TextDecoder().decode(user.getSeed());
  return {
    config: `operator: ${jwt(operator, operator, "operator", {})}
system_account: ${system.getPublicKey()}
resolver: MEMORY
resolver_preload: {
  ${account.getPublicKey()}: ${jwt(operator, account, "account", { limits })}
  ${system.getPublicKey()}: ${jwt(operator, system, "account", { limits: UNLIMITED })}
}`,
    creds: `-----BEGIN NATS USER JWT-----
${userJwt}
------END NATS USER JWT------

-----BEGIN USER NKEY SEED-----
${seed}
------END USER NKEY SEED------
`,
  };
}
