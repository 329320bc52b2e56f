import { PawlError } from "../errors/errors.ts";
import type { Revision, TaskStore } from "../ports/store.ts";
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

/** A token is a record, named by its hash: made once, and written again by nobody but who revokes it. */
const recordName = (hash: string) => `token-${hash}`;

/** Where earlier versions kept tokens: as parts of an id that no task can have. */
const FORMER_PLACE = "__tokens__";

export async function createToken(store: TaskStore, token: Token): Promise<string> {
  if (!/^[\w.@-]{1,128}$/.test(token.owner))
    throw new PawlError(
      "input_invalid",
      `The owner is ${JSON.stringify(token.owner)}; it should be 1 to 128 of A-Z a-z 0-9 _ . @ -`,
    );
  const secret = btoa(String.fromCharCode(...crypto.getRandomValues(new Uint8Array(32))));
  const text = `pawl_${secret.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")}`;
  await store.putRecord(recordName(await sha256(text)), JSON.stringify(token));
  return text;
}

export function isTokenLike(text: string): boolean {
  return /^pawl_[\w-]{43}$/.test(text);
}

/** From now on it is none. True when it was one. */
export async function revokeToken(store: TaskStore, text: string): Promise<boolean> {
  const hash = await sha256(text);
  const { token, revision } = await read(store, hash);
  if (!token) return false;
  const written = await store.putRecord(recordName(hash), JSON.stringify({ revoked: true }), revision);
  // Another one was faster: then it is a token no more.
  if (written.kind === "refused") return revokeToken(store, text);
  await store.removeParts(FORMER_PLACE, (name) => name === hash);
  return true;
}

/** Looked up by its hash: no comparison's time says anything of a token. */
export async function findToken(store: TaskStore, text: string): Promise<Token | undefined> {
  return isTokenLike(text) ? (await read(store, await sha256(text))).token : undefined;
}

/** A token of an earlier version is read where that version put it, until it is revoked: then there is a record of it. */
async function read(store: TaskStore, hash: string): Promise<{ token?: Token; revision?: Revision }> {
  const record = await store.getRecord(recordName(hash));
  const text = record ? record.text : await store.getPart(FORMER_PLACE, hash);
  const token = text === undefined ? undefined : (JSON.parse(text) as Token & { revoked?: boolean });
  return { ...(record && { revision: record.revision }), ...(token && !token.revoked && { token }) };
}
