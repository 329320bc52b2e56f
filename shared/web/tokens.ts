import { PawlError } from "../errors/errors.ts";
import type { Revision, TaskStore } from "../ports/store.ts";
import type { Millis } from "../task/document.ts";
import { sha256 } from "../values/json.ts";
import type { Scope } from "./scopes.ts";
import { addListed, forgetUse, hashOfId, isTokenId, removeListed, tokenIdOf } from "./token-list.ts";

/** What is known of a token. Itself is known to its holder only: the store has its hash. */
export interface Token {
  readonly owner: string;
  readonly scopes: readonly Scope[];
  /** Limited to these agents. */
  readonly agents?: readonly string[];
  readonly createdAt: Millis;
  /** From then on it is refused. */
  readonly expiresAt?: Millis;
}

/** A token that is there, with its public id, by which it is named in histories, the audit trail and the list. */
export interface KnownToken extends Token {
  readonly id: string;
}

/** A token is a record, named by its hash: made once, and written again by nobody but who revokes it. */
const recordName = (hash: string) => `token-${hash}`;

/**
 * Where earlier versions kept tokens: as parts of an id that no task can have. Nobody looks there for a token any more: who
 * may write parts would make themselves one.
 */
const FORMER_PLACE = "__tokens__";

/** A secret of 256 bits. */
export function newTokenText(): string {
  const secret = btoa(String.fromCharCode(...crypto.getRandomValues(new Uint8Array(32))));
  return `pawl_${secret.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")}`;
}

/** Listed first: no token works that is not in the list. */
export async function createToken(
  store: TaskStore,
  token: Token,
  text: string = newTokenText(),
): Promise<string> {
  if (!/^[\w.@-]{1,128}$/.test(token.owner))
    throw new PawlError(
      "input_invalid",
      `The owner is ${JSON.stringify(token.owner)}; it should be 1 to 128 of A-Z a-z 0-9 _ . @ -`,
    );
  const hash = sha256(text);
  await addListed(store, hash);
  await store.putRecord(recordName(hash), JSON.stringify(token));
  return text;
}

export function isTokenLike(text: string): boolean {
  return /^pawl_[\w-]{43}$/.test(text);
}

/** The hash of a token that is given as itself or by its public id. Undefined where nobody knows one of that id. */
export async function tokenHash(store: TaskStore, given: string): Promise<string | undefined> {
  return isTokenId(given) ? hashOfId(store, given) : sha256(given);
}

/** From now on it is none. Returns it as it was, if it was one. */
export async function revokeToken(store: TaskStore, given: string): Promise<KnownToken | undefined> {
  const hash = await tokenHash(store, given);
  if (hash === undefined) return undefined;
  const { token, revision } = await read(store, hash);
  if (!token) return undefined;
  const written = await store.putRecord(recordName(hash), JSON.stringify({ revoked: true }), revision);
  // Another one was faster: then it is a token no more.
  if (written.kind === "refused") return revokeToken(store, given);
  await removeListed(store, hash);
  await forgetUse(store, token.id);
  return token;
}

/** Looked up by its hash: no comparison's time says anything of a token. One that has expired is found too. */
export async function findToken(store: TaskStore, text: string): Promise<KnownToken | undefined> {
  return isTokenLike(text) ? findByHash(store, sha256(text)) : undefined;
}

export async function findByHash(store: TaskStore, hash: string): Promise<KnownToken | undefined> {
  return (await read(store, hash)).token;
}

export function isExpired({ expiresAt }: Pick<Token, "expiresAt">, now: Millis): boolean {
  return expiresAt !== undefined && expiresAt <= now;
}

async function read(store: TaskStore, hash: string): Promise<{ token?: KnownToken; revision?: Revision }> {
  const record = await store.getRecord(recordName(hash));
  const text = record?.text;
  const token = text === undefined ? undefined : (JSON.parse(text) as Token & { revoked?: boolean });
  return {
    ...(record && { revision: record.revision }),
    ...(token && !token.revoked && { token: { ...token, id: tokenIdOf(hash) } }),
  };
}

/**
 * Brings tokens of earlier versions to where tokens are looked for now. Once, for a person who looks at what it brings: what
 * lies there may be of anybody who may write parts. One that was revoked since stays so.
 */
export async function moveFormerTokens(store: TaskStore): Promise<readonly KnownToken[]> {
  const hashes: string[] = [];
  await store.removeParts(FORMER_PLACE, (name) => {
    hashes.push(name);
    return false;
  });
  const moved: KnownToken[] = [];
  for (const hash of hashes) {
    const text = await store.getPart(FORMER_PLACE, hash);
    const token = text === undefined ? undefined : (JSON.parse(text) as Token & { revoked?: boolean });
    if (!token || token.revoked) continue;
    await addListed(store, hash);
    const written = await store.putRecord(recordName(hash), JSON.stringify(token));
    if (written.kind === "written") moved.push({ ...token, id: tokenIdOf(hash) });
  }
  await store.removeParts(FORMER_PLACE, (name) => hashes.includes(name));
  return moved;
}
