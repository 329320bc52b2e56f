import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Config } from "../../../functions/wiring/config.ts";
import { readKey } from "../../../functions/wiring/wire.node.ts";
import { serviceAccountToken } from "../../../shared/adapters/firestore/google-token.ts";
import { DEFAULT_DATABASE } from "../../../shared/adapters/firestore/http.ts";
import { PawlError } from "../../../shared/errors/errors.ts";
import { PACKAGE } from "../../project.ts";
import { asking, type Seen } from "./ask.ts";

interface Index {
  readonly name?: string;
  readonly collectionGroup?: string;
  readonly state?: string;
  readonly fields: readonly { readonly fieldPath: string; readonly order?: string }[];
}
interface Field {
  readonly name: string;
}

/** Fields compared for equality come in any order; the last one orders. */
const keyOf = (group: string, { fields }: Index): string => {
  const names = fields
    .filter(({ fieldPath }) => fieldPath !== "__name__")
    .map(({ fieldPath, order }) => `${fieldPath} ${order?.toLowerCase()}`);
  return `${group}: ${[...names.slice(0, -1).sort(), ...names.slice(-1)].join(", ")}`;
};

const groupIn = (name = "") => /\/collectionGroups\/([^/]+)\//.exec(name)?.[1] ?? "";

/** What Firestore has of indexes and TTL policies, against what Pawl needs. */
export function firestoreFaults(
  namespace: string,
  indexes: readonly Index[],
  policies: readonly Field[],
): NonNullable<Seen["firestore"]> {
  const there = new Set(
    indexes.filter(({ state }) => state === "READY").map((one) => keyOf(groupIn(one.name), one)),
  );
  const text = readFileSync(join(PACKAGE, "infra/firestore.indexes.json"), "utf8");
  const { indexes: ours } = JSON.parse(text) as { readonly indexes: readonly Index[] };
  const needed = ours.map((one) =>
    keyOf((one.collectionGroup as string).replace(/^pawl-/, `${namespace}-`), one),
  );
  return {
    missing: needed.filter((key) => !there.has(key)),
    policies: policies
      .filter(({ name }) => groupIn(name).startsWith(`${namespace}-`))
      .map(({ name }) => `${groupIn(name)}.${name.split("/").at(-1)}`),
  };
}

/** Asks Firestore's administration, with the service account's key; without one it is left out. */
export async function lookAtFirestore(live: Seen, config: Config, unseen: string[]): Promise<void> {
  const account = await readKey(config);
  if (!account) {
    unseen.push("Firestore's indexes and TTL policies: GOOGLE_APPLICATION_CREDENTIALS is not set");
    return;
  }
  const token = serviceAccountToken(account);
  const root = `https://firestore.googleapis.com/v1/projects/${config.project}/databases/${config.database ?? DEFAULT_DATABASE}/collectionGroups/-`;
  const list = async <T>(path: string, of: "indexes" | "fields"): Promise<readonly T[]> => {
    const url = new URL(`${root}/${path}`);
    const all: T[] = [];
    for (let page = ""; ; ) {
      if (page !== "") url.searchParams.set("pageToken", page);
      const answer = await fetch(url, {
        headers: { authorization: `Bearer ${await token()}` },
        signal: AbortSignal.timeout(config.settings.requestTimeout),
      });
      if (answer.status === 401 || answer.status === 403)
        throw new PawlError(
          "store_refused",
          `it answered ${answer.status}: it takes the role datastore.indexAdmin`,
        );
      if (!answer.ok)
        throw new PawlError("store_unavailable", `Firestore's administration answered ${answer.status}`);
      const body = (await answer.json()) as Partial<Record<typeof of, T[]>> & { nextPageToken?: string };
      all.push(...(body[of] ?? []));
      if (!body.nextPageToken) return all;
      page = body.nextPageToken;
    }
  };
  const found = await asking(live)("listing Firestore's indexes", async () =>
    firestoreFaults(
      config.settings.namespace,
      await list<Index>("indexes", "indexes"),
      await list<Field>(`fields?filter=${encodeURIComponent("ttlConfig:*")}`, "fields"),
    ),
  );
  if (found) live.firestore = found;
}
