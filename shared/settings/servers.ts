import { pricesFrom } from "../journal/prices.ts";
import { address, identityIn, text, tooShort, type Variable } from "./variable.ts";

export const STORES = ["firestore", "firestore-rest", "nats-kv"] as const;
export type StoreKind = (typeof STORES)[number];

/** A word that stands in PAWL_SEAL_KEY for what was sealed before there was a key. */
export const NO_KEY = "none";

const SCHEMES = "nats://, tls://, ws:// or wss://";

/** One, or several of a cluster. */
export const natsServers = (urls: string): readonly string[] => urls.split(",").map((url) => url.trim());

/** Which transport an address asks for. */
export const isWebSocket = (url: string): boolean => /^wss?:/.test(url);

function natsUrlProblem(urls: string): string | undefined {
  // Nothing of it is shown: beside an @ there may be a password, and a password may have an @.
  if (urls.includes("@"))
    return "NATS_URL has a name or a password in it. Give them in NATS_USER and NATS_PASSWORD, or a credentials file in NATS_CREDS: an address is shown in errors and logs";
  const all = natsServers(urls);
  for (const url of all) {
    if (!/^(nats|tls|ws|wss):\/\/[^\s/]+/.test(url))
      return `NATS_URL is ${JSON.stringify(url)}. It should begin with ${SCHEMES}`;
    if (!URL.canParse(url)) return `NATS_URL is ${JSON.stringify(url)}, which is not a valid address`;
  }
  return new Set(all.map(isWebSocket)).size > 1
    ? `NATS_URL is ${JSON.stringify(urls)}. All of its addresses should be of WebSockets (ws://, wss://), or none`
    : undefined;
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
    form: `an address that begins with ${SCHEMES}, or several, separated by commas`,
    meaning:
      "Address of the NATS server, or of several of one cluster, separated by commas. Workers reach it by `wss://` only.",
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
    readBy: ["library", "command", "deploy", "local"],
    required: `Set it to one of ${STORES.join(", ")}: where task documents are kept`,
    read: (kind) => STORES.find((one) => one === kind),
  },
  GOOGLE_CLOUD_PROJECT: {
    form: "a project's id",
    meaning: "The project of both Firestore stores, and of a deploy to Google Cloud.",
    readBy: ["library", "deploy"],
    read: text,
  },
  FIRESTORE_DATABASE: {
    form: "a database's id: (default), or a letter, then a-z 0-9 - (4 to 63)",
    meaning:
      "The database of both Firestore stores. One for each tenant keeps them apart: IAM lets an account into a database, or not ([deploy.md](deploy.md#firestore)).",
    readBy: ["library"],
    unset: "(default)",
    read: (id) => (/^(\(default\)|[a-z][a-z0-9-]{2,61}[a-z0-9])$/.test(id) ? id : undefined),
  },
  GOOGLE_APPLICATION_CREDENTIALS: {
    form: "the path of a service account's key file, or its content",
    meaning: "The identity at both Firestore stores. Workers have no files, so there it is the content.",
    readBy: ["library", "deploy"],
    secret: true,
    standIn: "{}",
    read: text,
  },
  FIRESTORE_EMULATOR_HOST: {
    form: "`host:port`",
    meaning: "An emulator, instead of Google's Firestore.",
    readBy: ["library", "deploy", "local"],
    read: text,
  },
  ANTHROPIC_API_KEY: {
    form: "a key",
    meaning:
      "The model's API, for agents that call `llm`. `npm run dev` and the demo have a stand-in for it.",
    readBy: ["library", "drill"],
    secret: true,
    read: text,
  },
  ANTHROPIC_BASE_URL: {
    form: "an address",
    meaning: "Another address of the model's API.",
    readBy: ["library", "drill"],
    unset: "Anthropic's",
    read: address,
    wrong: (url) => identityIn("ANTHROPIC_BASE_URL", url, "The API knows its caller by ANTHROPIC_API_KEY"),
  },
  PAWL_PRICES: {
    sets: "prices",
    form: 'JSON such as `{"claude-sonnet-5-5": {"input": 2, "output": 10}}`',
    meaning:
      "Prices of models, in dollars per million tokens; `cacheRead` is a share of `input` (0.1), `window` the most tokens of a request ([author.md](author.md#budgets)).",
    readBy: ["library"],
    default: "{}",
    unset: "those of shared/journal/prices.ts",
    read: pricesFrom,
  },
  PAWL_KEEP_PROMPTS: {
    sets: "keepPrompts",
    form: "true or false",
    meaning:
      "Whether journals keep what models and their tools are asked, for people to look at. At most 4 KiB of each; an agent's `keepPrompts: false` keeps its own out ([author.md](author.md#models)).",
    readBy: ["library"],
    default: "true",
    read: (value) => (/^(true|false)$/.test(value) ? value === "true" : undefined),
  },
  PAWL_SEAL_KEY: {
    form: "16 characters or more; several are separated by commas, the newest first",
    meaning:
      "What documents and journals are sealed with ([operator.md](operator.md#seals)). The same for every function and command.",
    readBy: ["library", "deploy"],
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
