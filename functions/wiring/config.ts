import type { OtlpOptions } from "../../shared/adapters/otlp.ts";
import { messageOf, PawlError } from "../../shared/errors/errors.ts";
import type { StoreKind } from "../../shared/settings/servers.ts";
import { type Settings, settingsOf } from "../../shared/settings/settings.ts";
import { contradictions } from "../../shared/settings/together.ts";
import type { Env } from "../../shared/settings/variable.ts";
import { defaultOf, type Given, type Reading, readVariables } from "../../shared/settings/variables.ts";

export { STORES, type StoreKind } from "../../shared/settings/servers.ts";

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
  /** Of Firestore: the default one where it is left out. */
  readonly database?: string;
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
  /** Where tasks are told of, and how. */
  readonly traces?: Traces;
}

export interface Traces extends OtlpOptions {
  /** Longest that a span waits for others, in milliseconds. */
  readonly every: number;
  readonly sampling: { readonly ratio: number; readonly byParent: boolean };
  /** Whether prompts, answers and the words of errors are told. */
  readonly content: boolean;
}

/** Which documents these are, however they are reached: a queue belongs to one store. */
export function storeIdentity({ settings, store, project, database, emulatorHost }: Config): string {
  const { namespace } = settings;
  if (store === "nats-kv") return `nats-kv:${namespace}`;
  const where = database === undefined ? project : `${project}/${database}`;
  return `${emulatorHost ? "firestore-emulator" : "firestore"}:${where}:${namespace}`;
}

export function configFrom(env: Env): Config {
  return configOf(readVariables(env));
}

/** Everything that is wrong is said at once. */
export function configOf(reading: Reading): Config {
  const { given } = reading;
  const wrong = [...reading.problems, ...contradictions(reading)];
  const { NATS_URL: url, PAWL_STORE: store } = given;
  try {
    const settings = settingsOf(reading);
    if (wrong.length === 0 && settings && url !== undefined && store !== undefined)
      return { settings, nats: { url, ...identityOf(given) }, store, ...storeOf(given), ...restOf(given) };
  } catch (error) {
    wrong.push(messageOf(error));
  }
  throw new PawlError("setting_invalid", wrong.join("\n"));
}

export function identityOf({ NATS_CREDS, NATS_USER, NATS_PASSWORD }: Given): Omit<Config["nats"], "url"> {
  if (NATS_USER && NATS_PASSWORD) return { user: NATS_USER, password: NATS_PASSWORD };
  if (!NATS_CREDS) return {};
  return /BEGIN NATS USER JWT/.test(NATS_CREDS) ? { creds: NATS_CREDS } : { credsFile: NATS_CREDS };
}

function storeOf(given: Given): Pick<Config, "project" | "database" | "emulatorHost" | "key" | "keyFile"> {
  const {
    GOOGLE_CLOUD_PROJECT: project,
    FIRESTORE_DATABASE: database,
    FIRESTORE_EMULATOR_HOST: emulatorHost,
    GOOGLE_APPLICATION_CREDENTIALS: key,
  } = given;
  if (given.PAWL_STORE === "nats-kv") return {};
  return {
    ...(project && { project }),
    ...(database && database !== "(default)" && { database }),
    ...(emulatorHost && { emulatorHost }),
    ...(key && (key.trimStart().startsWith("{") ? { key } : { keyFile: key })),
  };
}

type Rest = Omit<Config, "settings" | "nats" | "store" | keyof ReturnType<typeof storeOf>>;

function restOf(given: Given): Rest {
  const { PAWL_WEBHOOK_URL: url, PAWL_WEBHOOK_SECRET: secret } = given;
  const { ANTHROPIC_API_KEY: apiKey, ANTHROPIC_BASE_URL: baseUrl } = given;
  const rest: { [K in keyof Rest]-?: Rest[K] | undefined } = {
    runSecret: given.PAWL_RUN_SECRET,
    wakeUrl: given.PAWL_WAKE_URL,
    timeLimit: given.PAWL_TIME_LIMIT,
    webhook: url && secret ? { url, secret } : undefined,
    corsOrigin: given.PAWL_CORS_ORIGIN,
    rateLimit: given.PAWL_RATE_LIMIT,
    sealKeys: given.PAWL_SEAL_KEY,
    model: apiKey ? { apiKey, ...(baseUrl && { baseUrl }) } : undefined,
    traces: tracesOf(given),
  };
  return Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== undefined)) as Rest;
}

function tracesOf(given: Given): Traces | undefined {
  const {
    OTEL_EXPORTER_OTLP_ENDPOINT: base,
    OTEL_TRACES_SAMPLER: sampler = defaultOf("OTEL_TRACES_SAMPLER"),
  } = given;
  const url = given.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT ?? (base && `${base.replace(/\/+$/, "")}/v1/traces`);
  if (!url || sampler === "always_off") return undefined;
  const share = given.OTEL_TRACES_SAMPLER_ARG ?? defaultOf("OTEL_TRACES_SAMPLER_ARG");
  const ratio = sampler.endsWith("traceidratio") ? share : sampler.endsWith("off") ? 0 : 1;
  const name = given.OTEL_SERVICE_NAME;
  return {
    url,
    headers: given.OTEL_EXPORTER_OTLP_HEADERS ?? {},
    timeout: given.OTEL_EXPORTER_OTLP_TIMEOUT ?? defaultOf("OTEL_EXPORTER_OTLP_TIMEOUT"),
    every: given.OTEL_BSP_SCHEDULE_DELAY ?? defaultOf("OTEL_BSP_SCHEDULE_DELAY"),
    resource: {
      "service.name": "pawl",
      ...given.OTEL_RESOURCE_ATTRIBUTES,
      ...(name && { "service.name": name }),
    },
    sampling: { ratio, byParent: sampler.startsWith("parentbased_") },
    content: given.OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT ?? false,
  };
}
