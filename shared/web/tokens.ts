import { PawlError } from "../errors/errors.ts";
import type { TaskStore } from "../ports/store.ts";
import { sha256 } from "../values/json.ts";
import type { Scope } from "./scopes.ts";

/** What is known of a token. Itself is known to its holder only: the store has its hash. */
export interface Token {
  readonly owner: string;
  readonly scopes: readonly Scope[];
  /** Limited to these agents. */
  readonly agents?: readonly string[];
  readonly createdAt: number;
}

/** No task can have this id, so nothing of a task's is ever stored beside it. */
const PLACE = "__tokens__";

export async function createToken(store: TaskStore, token: Token): Promise<string> {
  if (!/^[\w.@-]{1,128}$/.test(token.owner))
    throw new PawlError(
      "input_invalid",
      `The owner is ${JSON.stringify(token.owner)}; it should be 1 to 128 of A-Z a-z 0-9 _ . @ -`,
    );
  const secret = btoa(String.fromCharCode(...crypto.getRandomValues(new Uint8Array(32))));
  const text = `pawl_${secret.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")}`;
  await store.putPart(PLACE, await sha256(text), JSON.stringify(token));
  return text;
}

export function isTokenLike(text: string): boolean {
  return /^pawl_[\w-]{43}$/.test(text);
}

/** From now on it is none. True when it was one. */
export async function revokeToken(store: TaskStore, text: string): Promise<boolean> {
  if (!(await findToken(store, text))) return false;
  await store.putPart(PLACE, await sha256(text), JSON.stringify({ revoked: true }));
  return true;
}

/** Looked up by its hash: no comparison's time says anything of a token. */
export async function findToken(store: TaskStore, text: string): Promise<Token | undefined> {
  if (!isTokenLike(text)) return undefined;
  const found = await store.getPart(PLACE, await sha256(text));
  const token = found === undefined ? undefined : (JSON.parse(found) as Token & { revoked?: boolean });
  return token?.revoked ? undefined : token;
}
