import { createAccount, createOperator, createUser } from "@nats-io/nkeys";
import { ACCOUNT_LIMITS, credsText, jwt, STORAGE, UNLIMITED } from "../../../infra/creds/jwt.ts";

/** A server's configuration with one account, and a credentials file for a user of it. */
export function credentials(): { config: string; creds: string } {
  const [operator, system, account, user] = [
    createOperator(),
    createAccount(),
    createAccount(),
    createUser(),
  ];
  const limits = { ...ACCOUNT_LIMITS, ...STORAGE };
  return {
    config: `operator: ${jwt(operator, operator.getPublicKey(), "operator", {})}
system_account: ${system.getPublicKey()}
resolver: MEMORY
resolver_preload: {
  ${account.getPublicKey()}: ${jwt(operator, account.getPublicKey(), "account", { limits })}
  ${system.getPublicKey()}: ${jwt(operator, system.getPublicKey(), "account", { limits: UNLIMITED })}
}`,
    creds: credsText(user, jwt(account, user.getPublicKey(), "user", UNLIMITED)),
  };
}
