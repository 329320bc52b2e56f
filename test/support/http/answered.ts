import { expect } from "vitest";
import { clientOf } from "../../../shared/client/client.ts";
import { Problem } from "../../../shared/client.ts";
import { type Fetch, hasty } from "./calling.ts";

export const TOKEN = "pawl_0123456789-the-secret";
export const URL_OF_API = "https://pawl.test/api/";

export interface Sent {
  readonly url: string;
  readonly init: RequestInit;
}

/** A client whose requests are answered by these in turn, the last one again and again. */
export function answered(...answers: (() => Response | Promise<Response>)[]) {
  const sent: Sent[] = [];
  const wire: Fetch = async (url, init) => {
    sent.push({ url, init });
    return (answers[Math.min(sent.length, answers.length) - 1] as () => Response)();
  };
  const connection = hasty({ url: URL_OF_API, token: TOKEN, fetch: wire });
  return { pawl: clientOf(connection), sent, slept: connection.slept };
}

export const keysOf = (sent: readonly Sent[]) =>
  sent.map(({ init }) => (init.headers as Record<string, string>)["idempotency-key"]);

export const json = (body: object, status = 200, headers = {}) =>
  Response.json(body, { status, headers: { "content-type": "application/json", ...headers } });
export const problem = (code: string, status: number, headers = {}) =>
  json({ type: "about:blank", status, code, detail: `so it is: ${code}` }, status, {
    "content-type": "application/problem+json",
    ...headers,
  });
export const accepted = () => json({ id: "t", kind: "accepted", state: "dispatched" }, 201);
export const lost = () => Promise.reject(new TypeError("fetch failed", { cause: { code: "ECONNRESET" } }));
export const wrongOf = async (call: Promise<unknown>) => {
  const error = await call.then(
    () => expect.unreachable("nothing was thrown"),
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(Problem);
  return error as Problem;
};
