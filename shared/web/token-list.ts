import { PawlError } from "../errors/errors.ts";
import type { TaskStore } from "../ports/store.ts";
import type { Millis } from "../task/document.ts";

/**
 * Which tokens there are: their hashes, in one record for each first digit of them, so that a record holds thousands. A store
 * has no way to list records. What a token may do stands in its own record alone.
 */
const listName = (hash: string) => `tokens-${hash.slice(0, 1)}`;
const DIGITS = [..."0123456789abcdef"];
/** So many hashes fit a record. */
const MOST_LISTED = 10_000;
const MOST_TRIES = 100;

/** A token's public id: the first 64 bits of its hash, which say nothing of the token. */
export const tokenIdOf = (hash: string): string => `tok_${hash.slice(0, 16)}`;

export const isTokenId = (text: string): boolean => /^tok_[0-9a-f]{16}$/.test(text);

export async function hashOfId(store: TaskStore, id: string): Promise<string | undefined> {
  const hash = id.slice("tok_".length);
  return (await listed(store, hash)).hashes.find((one) => one.startsWith(hash));
}

/** The hashes of all tokens that are known, some of them perhaps revoked. */
export async function listedHashes(store: TaskStore): Promise<string[]> {
  return (await Promise.all(DIGITS.map((digit) => listed(store, digit)))).flatMap(({ hashes }) => hashes);
}

async function listed(store: TaskStore, hash: string) {
  const record = await store.getRecord(listName(hash));
  return { record, hashes: record ? (JSON.parse(record.text) as string[]) : [] };
}

export function addListed(store: TaskStore, hash: string): Promise<void> {
  return change(store, hash, (hashes) => (hashes.includes(hash) ? undefined : [...hashes, hash]));
}

export function removeListed(store: TaskStore, hash: string): Promise<void> {
  return change(store, hash, (hashes) =>
    hashes.includes(hash) ? hashes.filter((one) => one !== hash) : undefined,
  );
}

async function change(
  store: TaskStore,
  hash: string,
  changed: (hashes: readonly string[]) => readonly string[] | undefined,
): Promise<void> {
  for (let tries = 0; tries < MOST_TRIES; tries++) {
    const { record, hashes } = await listed(store, hash);
    const next = changed(hashes);
    if (!next) return;
    if (next.length > MOST_LISTED)
      throw new PawlError("input_invalid", `There are ${hashes.length} tokens like it: revoke some`);
    const written = await store.putRecord(listName(hash), JSON.stringify(next), record?.revision);
    if (written.kind === "written") return;
  }
  throw new PawlError("store_unavailable", "The list of tokens is written by too many others at once");
}

const useName = (id: string) => `token-use-${id}`;

/** When it was used last, to a few minutes. */
export async function lastUse(store: TaskStore, id: string): Promise<Millis | undefined> {
  const text = await store.getText(useName(id));
  return text === undefined ? undefined : Number(text);
}

export function forgetUse(store: TaskStore, id: string): Promise<void> {
  return store.removeTexts((name) => name === useName(id));
}

/** Written at most so often by one instance. */
export const USE_EVERY = 300_000;
const MOST_NOTED = 10_000;

/**
 * Notes that a token was used, now and then, beside the request. A token of an earlier version is in no list: from its first
 * use on it is.
 */
export function useNoter(): (
  store: TaskStore,
  token: { readonly id: string },
  hash: string,
  now: Millis,
) => Promise<void> | undefined {
  const noted = new Map<string, Millis>();
  return (store, { id }, hash, now) => {
    if (now - (noted.get(id) ?? Number.NEGATIVE_INFINITY) < USE_EVERY) return undefined;
    noted.delete(id);
    if (noted.size >= MOST_NOTED) noted.delete(noted.keys().next().value as string);
    noted.set(id, now);
    return (async () => {
      await store.putText(useName(id), String(now));
      await addListed(store, hash);
    })();
  };
}
