import { Unreadable } from "../../errors/errors.ts";
import { isTaskId } from "../../task/names.ts";
import { taskKey } from "./bucket.ts";
import type { BucketStore, Buckets } from "./bucket-store.ts";
import type { SaidPlaces } from "./said.ts";

/** A task's place never changes while it is there; so many are remembered. */
const MOST_PLACES = 10_000;

/** Where a task is. Sure: it is said there, or it lies where no agent can write; else an agent may have put it there. */
interface Known {
  readonly store: BucketStore;
  readonly isSure: boolean;
}

export interface Place {
  readonly store: BucketStore;
  readonly text: string;
  readonly revision: string;
}

export interface Finder {
  find(id: string): Promise<Place | undefined>;
  remember(id: string, store: BucketStore): void;
  /** Where it is, if that is remembered and sure. */
  sureOf(id: string): BucketStore | undefined;
  /** Of what lies in an agent's bucket, which it may write: false where the id is said to be another's. */
  isBelieved(id: string, agent: string, store: BucketStore): Promise<boolean>;
}

/** Finds documents by their ids: what is said of an id comes before what lies under it in an agent's bucket. */
export function finder({ shared, agents, open }: Buckets, said: SaidPlaces | undefined): Finder {
  const places = new Map<string, Known>();
  const remember = (id: string, store: BucketStore, isSure = true) => {
    places.delete(id);
    if (places.size >= MOST_PLACES) places.delete(places.keys().next().value as string);
    // Who is confined has nothing that says more.
    places.set(id, { store, isSure: isSure || !shared });
  };
  const sureOf = (id: string): BucketStore | undefined => {
    const known = places.get(id);
    return known?.isSure ? known.store : undefined;
  };
  const saidOf = async (id: string) => (isTaskId(id) ? (await said?.get(id))?.text : undefined);
  const isBelieved: Finder["isBelieved"] = async (id, agent, store) => {
    const owner = await saidOf(id);
    if (owner === agent) remember(id, store);
    return owner === undefined || owner === agent;
  };
  const ofAgents = async (): Promise<BucketStore[]> => Promise.all((await agents()).map(open));
  const textIn = async (store: BucketStore, id: string): Promise<Place | undefined> => {
    const found = await store.values.get(`Reading task ${id}`, taskKey(id));
    return found && { store, ...found };
  };

  /** Where a task is that nobody has said anything of. In two places, none of them can be believed. */
  const search = async (id: string, among: readonly BucketStore[]): Promise<Place | undefined> => {
    const found = (await Promise.all(among.map((store) => textIn(store, id)))).filter(
      (one) => one !== undefined,
    );
    const [first, second] = found;
    if (!first || !second) return first;
    const { text, revision } = first;
    const why = `it lies in ${found.map(({ store }) => store.name).join(" and in ")}`;
    throw new Unreadable(`Task ${id}`, { key: id, why, text, revision });
  };
  const find = async (id: string): Promise<Place | undefined> => {
    if (!isTaskId(id)) return undefined;
    const known = places.get(id);
    // It may have been said since that it is another's.
    const [there, owner] = known
      ? await Promise.all([textIn(known.store, id), known.isSure ? undefined : saidOf(id)])
      : [];
    if (there && owner === undefined) return there;
    places.delete(id);
    if (shared) return findBySaid(shared, id);
    return foundIn(await search(id, await ofAgents()), id);
  };
  const foundIn = (found: Place | undefined, id: string, isSure = false): Place | undefined => {
    if (found) remember(id, found.store, isSure);
    return found;
  };
  const findBySaid = async (whole: BucketStore, id: string): Promise<Place | undefined> => {
    const [owner, there, names] = await Promise.all([saidOf(id), textIn(whole, id), agents()]);
    const isSaid = owner !== undefined && names.includes(owner);
    // Nobody else's, also while it is not there yet, or not any more.
    if (isSaid) return foundIn((await textIn(await open(owner), id)) ?? there, id, true);
    if (there) return foundIn(there, id, true);
    return foundIn(await search(id, await Promise.all(names.map(open))), id);
  };
  return { find, remember, sureOf, isBelieved };
}
