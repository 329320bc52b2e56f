import { pricesFrom } from "../journal/prices.ts";
import { text, tooShort, type Variable } from "./variable.ts";

export const STORES = ["firestore", "firestore-rest", "nats-kv"] as const;
export type StoreKind = (typeof STORES)[number];

/** A word that stands in PAWL_SEAL_KEY for what was sealed before there was a key. */
export const NO_KEY = "none";

const SCHEMES = "nats://, tls://, ws:// or wss://";

function natsUrlProblem(url: string): string | undefined {
  // Up to an @ it may be a password.
  const shown = JSON.stringify(url.includes("@") ? `…@${url.split("@").at(-1)}` : url);
  if (!/^(nats|tls|ws|wss):\/\/[^\s/]+/.test(url))
    return `NATS_URL is ${shown}. It should begin with ${SCHEMES}`;
  return URL.canParse(url) ? undefined : `NATS_URL is ${shown}, which is not a valid address`;
}

function sealKeyProblem(keys: string): string | undefined {
  for (const [i, key] of sealKeysIn(keys).entries()) {
    const problem = tooShort(`Key ${i + 1} of PAWL_SEAL_KEY`, key);
    if (problem && !(key === NO_KEY && i > 0))
      return `${problem}. Keys are separated by commas, the newest first`;
  }
  return undefined;
}

const sealKeysIn = (keys: string): readonly string[] => keys.split(",").map((key) => key.trim());

/** Where messages and documents are, and who may reach them. */
export const serverVariables = {
  NATS_URL: {
    form: `an address that begins with ${SCHEMES}`,
    meaning: "Address of the NATS server. Workers reach it by `wss://` only.",
    readBy: ["library", "deploy"],
    required: "Set it to your server, such as nats://127.0.0.1:4222 or wss://…",
    read: text,
    wrong: natsUrlProblem,
  },
  NATS_CREDS: {
    form: "the path of a credentials file, or its content",
    meaning: "The identity at NATS: a credentials file. Workers have no files, so there it is the content.",
    readBy: ["library", "deploy"],
    secret: true,
    standIn: "-----BEGIN NATS USER JWT-----",
    read: text,
  },
  NATS_USER: {
    form: "a name",
    meaning: "The identity at NATS, instead of `NATS_CREDS`: a user. Needs `NATS_PASSWORD`.",
    readBy: ["library", "deploy"],
    read: text,
  },
  NATS_PASSWORD: {
    form: "a password",
    meaning: "What `NATS_USER` has to know.",
    readBy: ["library", "deploy"],
    secret: true,
    read: text,
  },
  PAWL_STORE: {
    form: `one of ${STORES.join(", ")}`,
    meaning:
      "Where task documents are kept: firestore, firestore-rest or nats-kv. On Workers both of the first are by REST; on Node `firestore` is by gRPC.",
    readBy: ["library", "deploy"],
    required: `Set it to one of ${STORES.join(", ")}: where task documents are kept`,
    read: (kind) => STORES.find((one) => one === kind),
  },
  GOOGLE_CLOUD_PROJECT: {
    form: "a project's id",
    meaning: "The project of both Firestore stores, and of a deploy to Google Cloud.",
    readBy: ["library", "deploy"],
    read: text,
  },
  GOOGLE_APPLICATION_CREDENTIALS: {
    form: "the path of a service account's key file, or its content",
    meaning: "The identity at both Firestore stores. Workers have no files, so there it is the content.",
    readBy: ["library"],
    secret: true,
    standIn: "{}",
    read: text,
  },
  FIRESTORE_EMULATOR_HOST: {
    form: "`host:port`",
    meaning: "An emulator, instead of Google's Firestore.",
    readBy: ["library", "local"],
    read: text,
  },
  ANTHROPIC_API_KEY: {
    form: "a key",
    meaning:
      "The model's API, for agents that call `llm`. `npm run dev` and the demo have a stand-in for it.",
    readBy: ["library", "local", "drill"],
    secret: true,
    read: text,
  },
  ANTHROPIC_BASE_URL: {
    form: "an address",
    meaning: "Another address of the model's API.",
    readBy: ["library", "local", "drill"],
    unset: "Anthropic's",
    read: text,
  },
  PAWL_PRICES: {
    sets: "prices",
    form: 'JSON such as `{"claude-sonnet-5-5": {"input": 2, "output": 10}}`',
    meaning: "Prices of models, in dollars per million tokens ([author.md](author.md#models)).",
    readBy: ["library"],
    default: "{}",
    unset: "those of shared/journal/prices.ts",
    read: pricesFrom,
  },
  PAWL_SEAL_KEY: {
    form: "16 characters or more; several are separated by commas, the newest first",
    meaning:
      "What documents and journals are sealed with ([operator.md](operator.md#seals)). The same for every function and command.",
    readBy: ["library"],
    unset: "seals have no key",
    secret: true,
    read: sealKeysIn,
    wrong: sealKeyProblem,
  },
  PAWL_NAMESPACE: {
    sets: "namespace",
    form: "a letter, then a-z 0-9 - (32 at most)",
    meaning: "Prefix of streams, subjects and collections. Two namespaces share nothing.",
    readBy: ["library"],
    default: "pawl",
    read: text,
  },
} as const satisfies Record<string, Variable>;
