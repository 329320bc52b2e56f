import { type JetStreamManager, jetstreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/nats-core";
import { identityOf } from "../../functions/wiring/config.ts";
import { connectNats } from "../../functions/wiring/wire.node.ts";
import { apiCode, busError, GONE } from "../../shared/adapters/jetstream/nats-errors.ts";
import { messageOf, PawlError } from "../../shared/errors/errors.ts";
import { settingsFrom } from "../../shared/settings/settings.ts";
import type { Env } from "../../shared/settings/variable.ts";
import { readVariable, readVariables } from "../../shared/settings/variables.ts";
import type { Application } from "./application.ts";
import { type Contract, GAVE_UP } from "./contract.ts";
import type { Fields } from "./fields.ts";
import { contractsOf, type Parts } from "./read.ts";

interface Named {
  readonly url: string;
  readonly stream: string;
  /** All of the stream's where it is left out. */
  readonly consumer?: string;
  /** The server's monitoring address. */
  readonly monitor?: string;
}

const TIMEOUT = 5_000;
const MOST_NAMED = 20;

/** A stream and its consumers as a server has them. It is asked only, never told. */
export async function byName(named: Named, given: Parts, env: Env): Promise<Contract[]> {
  if (given.streams.length + given.consumers.length > 0)
    throw new PawlError(
      "usage",
      "With --nats a file may say what the application does, and no stream or consumer",
    );
  const nc = await connected(named.url, env);
  try {
    const jsm = await jetstreamManager(nc, { timeout: TIMEOUT, checkAPI: false });
    const server = nc.info?.version;
    const stream = await streamOf(jsm, named);
    const consumers = await consumersOf(jsm, named);
    const application = await applicationOf(jsm, named, consumers, given.application);
    const parts: Parts = { streams: [stream], consumers, application, ...(server && { server }) };
    // A newer server may have fields that this table does not know.
    return contractsOf(parts).map((contract) => ({ ...contract, unknown: [] }));
  } catch (error) {
    throw busError(error, `Asking ${named.url} about ${named.stream}`);
  } finally {
    await nc.close();
  }
}

/** With the identity that Pawl's own commands have. */
async function connected(url: string, env: Env): Promise<NatsConnection> {
  try {
    readVariable({ NATS_URL: url }, "NATS_URL");
  } catch (error) {
    throw new PawlError("usage", messageOf(error).replaceAll("NATS_URL", "--nats"));
  }
  return connectNats({
    nats: { url, ...identityOf(readVariables(env).given) },
    settings: settingsFrom({}),
  });
}

async function streamOf(jsm: JetStreamManager, { url, stream }: Named): Promise<Fields> {
  try {
    return (await jsm.streams.info(stream)) as unknown as Fields;
  } catch (error) {
    if (!GONE.has(apiCode(error) ?? 0)) throw error;
    const names: string[] = [];
    for await (const name of jsm.streams.names()) if (names.length < MOST_NAMED) names.push(name);
    const there = names.length > 0 ? `It has ${names.join(", ")}` : "It has none";
    throw new PawlError("usage", `There is no stream ${JSON.stringify(stream)} at ${url}. ${there}`);
  }
}

async function consumersOf(jsm: JetStreamManager, { stream, consumer }: Named): Promise<Fields[]> {
  const all: Fields[] = [];
  for await (const one of jsm.consumers.list(stream)) all.push(one as unknown as Fields);
  const wanted = consumer === undefined ? all : all.filter(({ name }) => name === consumer);
  if (consumer === undefined || wanted.length > 0) return wanted;
  const names = all.map(({ name }) => name).slice(0, MOST_NAMED);
  throw new PawlError(
    "usage",
    `Stream ${stream} has no consumer ${JSON.stringify(consumer)}. It has ${names.join(", ") || "none"}`,
  );
}

/** What was said of it, and what can be seen: whether a stream captures advisories, and how often the server syncs. */
async function applicationOf(
  jsm: JetStreamManager,
  { stream, monitor }: Named,
  consumers: readonly Fields[],
  given: Application,
): Promise<Application> {
  const captured = await Promise.all(
    consumers.map(({ name }) => isCaptured(jsm, `${GAVE_UP}.${stream}.${name}`)),
  );
  return {
    ...(consumers.length > 0 && { dead_letters: captured.every(Boolean) ? "stream" : "subscription" }),
    ...given,
    ...(monitor && { sync: await syncAt(monitor) }),
  };
}

async function isCaptured(jsm: JetStreamManager, subject: string): Promise<boolean> {
  for await (const _ of jsm.streams.names(subject)) return true;
  return false;
}

interface Varz {
  readonly jetstream?: { readonly config?: { readonly sync_always?: boolean } };
}

/** As the server's own monitoring says it. */
export async function syncAt(monitor: string): Promise<NonNullable<Application["sync"]>> {
  try {
    const answer = await fetch(new URL("/varz", monitor), { signal: AbortSignal.timeout(TIMEOUT) });
    if (!answer.ok) throw new Error(`it answered ${answer.status}`);
    const { jetstream } = (await answer.json()) as Varz;
    if (!jetstream?.config) throw new Error("it says nothing of JetStream");
    return jetstream.config.sync_always ? "always" : "interval";
  } catch (error) {
    throw new PawlError(
      "usage",
      `--monitor ${monitor}: ${messageOf(error)}. It should be the address that nats-server's http: has, such as http://127.0.0.1:8222`,
    );
  }
}
