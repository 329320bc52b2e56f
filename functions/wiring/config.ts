import { messageOf, PawlError } from "../../shared/errors/errors.ts";
import { NO_KEY } from "../../shared/seal/seal.ts";
import { type Settings, settingsFrom, settingVariables } from "../../shared/settings/settings.ts";
import { parseDuration } from "../../shared/values/duration.ts";

export type Env = Readonly<Record<string, string | undefined>>;

export const STORES = ["firestore", "firestore-rest", "nats-kv"] as const;
export type StoreKind = (typeof STORES)[number];

/** Everything the environment says, read and checked before anything is connected. */
export interface Config {
  readonly settings: Settings;
  readonly nats: {
    readonly url: string;
    /** A path, or the file's content where there are no files. */
    readonly credsFile?: string;
    readonly creds?: string;
    readonly user?: string;
    readonly password?: string;
  };
  readonly store: StoreKind;
  readonly project?: string;
  readonly emulatorHost?: string;
  /** A service account's key: a path, or the file's content. */
  readonly keyFile?: string;
  readonly key?: string;
  /** What a caller of POST /run has to know. */
  readonly runSecret?: string;
  /** Where agents' functions are woken; {agent} stands for the name. */
  readonly wakeUrl?: string;
  /** Longest run of one invocation, in milliseconds. The platform's own where it is not set. */
  readonly timeLimit?: number;
  /** Who is told of tasks that failed, are in doubt or wait, and of reports. */
  readonly webhook?: { readonly url: string; readonly secret: string };
  /** The one origin that browsers may call the API from. */
  readonly corsOrigin?: string;
  /** Requests that one token may make in a minute, of one instance of the API. */
  readonly rateLimit?: number;
  /** Keys that documents are sealed with: the first seals, all are accepted. None: seals without a key. */
  readonly sealKeys?: readonly string[];
  /** The model's API. */
  readonly model?: { readonly apiKey: string; readonly baseUrl?: string };
}

/** Which documents these are, however they are reached: a queue belongs to one store. */
export function storeIdentity({ settings, store, project, emulatorHost }: Config): string {
  const { namespace } = settings;
  if (store === "nats-kv") return `nats-kv:${namespace}`;
  return `${emulatorHost ? "firestore-emulator" : "firestore"}:${project}:${namespace}`;
}

/** Variables that are not read here but are Pawl's own. */
const OTHERS =
  /^PAWL_(STORE|NAMESPACE|AGENTS_DIR|NATS_SERVER|CHROMIUM|RUN_SECRET|WAKE_URL|TIME_LIMIT|WEBHOOK_URL|WEBHOOK_SECRET|CORS_ORIGIN|RATE_LIMIT|PRICES|SEAL_KEY|DRILL_\w+|DEMO_\w+)$/;

/** Everything that is wrong is said at once. */
export function configFrom(env: Env): Config {
  const problems: string[] = [];
  const attempt = <T>(read: () => T): T | undefined => {
    try {
      return read();
    } catch (error) {
      problems.push(messageOf(error));
      return undefined;
    }
  };
  for (const name of Object.keys(env)) {
    if (!name.startsWith("PAWL_") || name in settingVariables || OTHERS.test(name)) continue;
    problems.push(`${name} is not a setting of Pawl. Check its spelling against docs/settings.md`);
  }
  const settings = attempt(() => settingsFrom(env));
  const nats = attempt(() => natsFrom(env));
  const store = attempt(() => storeFrom(env));
  const functions = attempt(() => functionsFrom(env));
  const seals = attempt(() => sealsFrom(env));
  const api = attempt(() => apiFrom(env));
  if (!settings || !nats || !store || !functions || !seals || !api || problems.length > 0)
    throw invalid(problems.join("\n"));
  const { ANTHROPIC_API_KEY: apiKey, ANTHROPIC_BASE_URL: baseUrl } = env;
  const model = apiKey && { model: { apiKey, ...(baseUrl && { baseUrl }) } };
  return { settings, nats, ...store, ...functions, ...seals, ...api, ...model };
}

const SHORTEST_SECRET = 16;

function functionsFrom(env: Env): Pick<Config, "runSecret" | "wakeUrl" | "timeLimit"> {
  const { PAWL_RUN_SECRET: runSecret, PAWL_WAKE_URL: wakeUrl, PAWL_TIME_LIMIT } = env;
  if (runSecret && runSecret.length < SHORTEST_SECRET) {
    throw invalid(
      `PAWL_RUN_SECRET has ${runSecret.length} characters. Use ${SHORTEST_SECRET} or more, such as the output of: openssl rand -hex 32`,
    );
  }
  if (wakeUrl && !/^https?:\/\/[^\s]+$/.test(wakeUrl)) {
    throw invalid(
      `PAWL_WAKE_URL is ${JSON.stringify(wakeUrl)}. It should be the address of an agent's POST /run, such as https://pawl-{agent}.example.com/run`,
    );
  }
  if (wakeUrl && !runSecret)
    throw invalid(
      "PAWL_WAKE_URL is set without PAWL_RUN_SECRET, which the functions ask for. Set both, or neither",
    );
  const timeLimit = PAWL_TIME_LIMIT ? parseDuration(PAWL_TIME_LIMIT) : undefined;
  if (PAWL_TIME_LIMIT && !timeLimit)
    throw invalid(
      `PAWL_TIME_LIMIT is ${JSON.stringify(PAWL_TIME_LIMIT)}; it should be a duration such as "15m"`,
    );
  return {
    ...(runSecret && { runSecret }),
    ...(wakeUrl && { wakeUrl }),
    ...(timeLimit && { timeLimit }),
  };
}

/** "newest,older,none": each is accepted until it is taken out, and the first one seals. */
function sealsFrom({ PAWL_SEAL_KEY: text }: Env): Pick<Config, "sealKeys"> {
  if (!text) return {};
  const sealKeys = text.split(",").map((key) => key.trim());
  for (const [i, key] of sealKeys.entries()) {
    if (key === NO_KEY && i > 0) continue;
    if (key.length < SHORTEST_SECRET)
      throw invalid(
        `Key ${i + 1} of PAWL_SEAL_KEY has ${key.length} characters. Use ${SHORTEST_SECRET} or more, such as the output of: openssl rand -hex 32. Keys are separated by commas, the newest first`,
      );
  }
  return { sealKeys };
}

function apiFrom(env: Env): Pick<Config, "webhook" | "corsOrigin" | "rateLimit"> {
  const { PAWL_WEBHOOK_URL: url, PAWL_WEBHOOK_SECRET: secret } = env;
  const { PAWL_CORS_ORIGIN: corsOrigin, PAWL_RATE_LIMIT } = env;
  if (url && !(/^https?:\/\/[^\s]+$/.test(url) && URL.canParse(url)))
    throw invalid(`PAWL_WEBHOOK_URL is ${JSON.stringify(url)}; it should begin with https://`);
  if (Boolean(url) !== Boolean(secret))
    throw invalid("PAWL_WEBHOOK_URL and PAWL_WEBHOOK_SECRET belong together. Set both, or neither");
  if (secret && secret.length < SHORTEST_SECRET)
    throw invalid(
      `PAWL_WEBHOOK_SECRET has ${secret.length} characters. Use ${SHORTEST_SECRET} or more, such as the output of: openssl rand -hex 32`,
    );
  if (secret?.startsWith("whsec_") && !/^[A-Za-z0-9+/]{22,}={0,2}$/.test(secret.slice("whsec_".length)))
    throw invalid("PAWL_WEBHOOK_SECRET begins with whsec_, so the rest should be base64 of 16 bytes or more");
  // As browsers write it, or it would never be theirs: small letters, and no port that goes without saying.
  if (corsOrigin && !(URL.canParse(corsOrigin) && new URL(corsOrigin).origin === corsOrigin))
    throw invalid(
      `PAWL_CORS_ORIGIN is ${JSON.stringify(corsOrigin)}; it should be one origin, such as https://app.example.com`,
    );
  if (PAWL_RATE_LIMIT && !/^[1-9]\d{0,6}$/.test(PAWL_RATE_LIMIT))
    throw invalid(
      `PAWL_RATE_LIMIT is ${JSON.stringify(PAWL_RATE_LIMIT)}; it should be a number of requests a minute`,
    );
  return {
    ...(url && secret && { webhook: { url, secret } }),
    ...(corsOrigin && { corsOrigin }),
    ...(PAWL_RATE_LIMIT && { rateLimit: Number(PAWL_RATE_LIMIT) }),
  };
}

function invalid(message: string): PawlError {
  return new PawlError("setting_invalid", message);
}

function natsFrom(env: Env): Config["nats"] {
  const { NATS_URL, NATS_CREDS, NATS_USER, NATS_PASSWORD } = env;
  if (!NATS_URL)
    throw invalid("NATS_URL is not set. Set it to your server, such as nats://127.0.0.1:4222 or wss://…");
  // Up to an @ it may be a password.
  const shown = NATS_URL.includes("@") ? `…@${NATS_URL.split("@").at(-1)}` : NATS_URL;
  if (!/^(nats|tls|ws|wss):\/\/[^\s/]+/.test(NATS_URL)) {
    throw invalid(
      `NATS_URL is ${JSON.stringify(shown)}. It should begin with nats://, tls://, ws:// or wss://`,
    );
  }
  if (!URL.canParse(NATS_URL)) {
    throw invalid(`NATS_URL is ${JSON.stringify(shown)}, which is not a valid address`);
  }
  if (NATS_CREDS && (NATS_USER || NATS_PASSWORD)) {
    throw invalid(
      "NATS_CREDS and NATS_USER/NATS_PASSWORD are both set. Unset one: a server takes a single identity",
    );
  }
  if (NATS_USER && !NATS_PASSWORD)
    throw invalid("NATS_USER is set without NATS_PASSWORD. Set both, or neither");
  if (NATS_PASSWORD && !NATS_USER)
    throw invalid("NATS_PASSWORD is set without NATS_USER. Set both, or neither");
  return {
    url: NATS_URL,
    ...(NATS_CREDS &&
      (/BEGIN NATS USER JWT/.test(NATS_CREDS) ? { creds: NATS_CREDS } : { credsFile: NATS_CREDS })),
    ...(NATS_USER && NATS_PASSWORD && { user: NATS_USER, password: NATS_PASSWORD }),
  };
}

function storeFrom(env: Env): Omit<Config, "settings" | "nats"> {
  const { PAWL_STORE, GOOGLE_CLOUD_PROJECT, FIRESTORE_EMULATOR_HOST, GOOGLE_APPLICATION_CREDENTIALS } = env;
  const store = STORES.find((kind) => kind === PAWL_STORE);
  if (!store) {
    const is = PAWL_STORE ? `is ${JSON.stringify(PAWL_STORE)}` : "is not set";
    throw invalid(`PAWL_STORE ${is}. Set it to one of ${STORES.join(", ")}: where task documents are kept`);
  }
  if (store === "nats-kv") return { store };
  if (!GOOGLE_CLOUD_PROJECT) {
    throw invalid(`GOOGLE_CLOUD_PROJECT is not set, and PAWL_STORE is ${store}. Set it to the project's id`);
  }
  if (store === "firestore-rest" && !FIRESTORE_EMULATOR_HOST && !GOOGLE_APPLICATION_CREDENTIALS) {
    throw invalid(
      "PAWL_STORE is firestore-rest, which needs GOOGLE_APPLICATION_CREDENTIALS (a service account's key file) or FIRESTORE_EMULATOR_HOST. Set one of them",
    );
  }
  return {
    store,
    project: GOOGLE_CLOUD_PROJECT,
    ...(FIRESTORE_EMULATOR_HOST && { emulatorHost: FIRESTORE_EMULATOR_HOST }),
    ...(GOOGLE_APPLICATION_CREDENTIALS &&
      (GOOGLE_APPLICATION_CREDENTIALS.trimStart().startsWith("{")
        ? { key: GOOGLE_APPLICATION_CREDENTIALS }
        : { keyFile: GOOGLE_APPLICATION_CREDENTIALS })),
  };
}
