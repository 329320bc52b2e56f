import { expect } from "vitest";
import * as z from "zod";
import type { LocalNats } from "../../../infra/local/nats-server.ts";
import type { AgentContext } from "../../../shared/agent.ts";
import { clientOf } from "../../../shared/client/client.ts";
import { type Connection, connect } from "../../../shared/client/connection.ts";
import { createClient } from "../../../shared/client.ts";
import type { Bindings } from "../../../shared/web/context.ts";
import { scopeNames } from "../../../shared/web/scopes.ts";
import { apiStage } from "./api.ts";
import { bodySchema, type OpenApi, type Operation, operationsOf, resolved } from "./document.ts";

export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

const URL_OF_API = "https://pawl.test";

/** The API in this process, as a client's `fetch`. Every request and every answer is held against the served document. */
export async function callingStage(nats: LocalNats, run?: (context: AgentContext<unknown>) => unknown) {
  const s = await apiStage(nats, "nats-kv", run);
  const bindings: Bindings = { open: async () => s.deps, log: s.deps.log, rateLimit: 6_000_000 };
  const token = await s.token("ann", scopeNames);
  const plain: Fetch = async (url, init) => s.app.request(url, init, bindings);
  const headers = { authorization: `Bearer ${token}` };
  const served = await plain(`${URL_OF_API}/v1/openapi.json`, { headers });
  const document = (await served.json()) as OpenApi;
  const operations = operationsOf(document);
  const asked: string[] = [];
  const wire: Fetch = async (url, init) => {
    const { pathname, searchParams } = new URL(url);
    const one = operations.find((each) => each.method === init.method && matches(each, pathname));
    expect(one, `${init.method} ${pathname} is in the document`).toBeDefined();
    const operation = one as Operation;
    asked.push(`${operation.method} ${operation.path}`);
    fitsRequest(operation, init, [...searchParams.keys()]);
    const answer = await plain(url, init);
    await fitsAnswer(operation, answer, document);
    return answer;
  };
  return Object.assign(s, {
    operations,
    asked,
    wire,
    clientToken: token,
    client: (fetch: Fetch = wire) => createClient({ url: URL_OF_API, token, fetch }),
    /** As `client`, whose pauses take no time. */
    hasty: (fetch: Fetch = wire) => clientOf(hasty({ url: URL_OF_API, token, fetch })),
  });
}

/** A connection whose clock only its own pauses move. */
export function hasty(options: Parameters<typeof connect>[0]): Connection & { readonly slept: number[] } {
  let now = 0;
  const slept: number[] = [];
  const sleep = async (ms: number, signal?: AbortSignal) => {
    signal?.throwIfAborted();
    slept.push(ms);
    now += ms;
    await new Promise((resolve) => setImmediate(resolve));
    signal?.throwIfAborted();
  };
  return { ...connect(options), now: () => now, sleep, slept };
}

function matches({ path }: Operation, pathname: string): boolean {
  return new RegExp(`^${path.replaceAll(/\{\w+\}/g, "[^/]+")}$`).test(pathname);
}

function fitsRequest(operation: Operation, init: RequestInit, query: readonly string[]): void {
  const where = `${operation.method} ${operation.path}`;
  const named = (place: "query" | "header") =>
    operation.parameters.filter((one) => one.in === place).map(({ name }) => name.toLowerCase());
  expect(named("query"), where).toEqual(expect.arrayContaining([...query]));
  const sent = Object.keys(init.headers as Record<string, string>).map((name) => name.toLowerCase());
  expect([...named("header"), "authorization", "content-type"], where).toEqual(expect.arrayContaining(sent));
  const schema = bodySchema(operation);
  expect(init.body === undefined, where).toBe(schema === undefined);
  if (!schema) return;
  const body: unknown = JSON.parse(String(init.body));
  expect(z.fromJSONSchema(schema).safeParse(body).error, `${where} ${init.body}`).toBeUndefined();
}

async function fitsAnswer(operation: Operation, answer: Response, document: OpenApi): Promise<void> {
  const where = `${operation.method} ${operation.path} ${answer.status}`;
  const type = answer.headers.get("content-type")?.split(";")[0] ?? "";
  const schema = operation.responses[answer.status]?.content[type]?.schema;
  expect(schema, `${where} ${type}`).toBeDefined();
  if (!type.endsWith("json")) return;
  const whole = z.fromJSONSchema(resolved(schema ?? {}, document));
  expect(whole.safeParse(await answer.clone().json()).error, where).toBeUndefined();
}
