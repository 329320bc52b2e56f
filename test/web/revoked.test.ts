import { afterAll, beforeAll, expect, test } from "vitest";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { createToken, revokeToken } from "../../shared/web/tokens.ts";
import { ALL } from "../support/http/api.ts";
import { webStage } from "../support/http/web.ts";
import { testNats } from "../support/servers/stores.ts";
import { until } from "../support/time/until.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

/** By the API, and as the dashboard's pages follow what changes. */
const STREAMS = {
  "the API": { path: "/v1/tasks/t/events", as: (token: string) => ({ token }) },
  "a task's page": { path: "/ui/tasks/t/live", as: cookie },
  "the overview": { path: "/ui/live", as: cookie },
};
function cookie(token: string) {
  return { headers: { cookie: `pawl=${token}` } };
}

test.each(Object.entries(STREAMS))(
  "of %s open streams of a token that is revoked, or expires, end within 10 s, and others go on",
  async (_, { path, as }) => {
    await using s = await webStage(nats);
    await s.submit({}, { id: "t", meta: { owner: "ann" } });
    const [kept, revoked] = [await s.token("ann", ALL), await s.token("ann", ALL)];
    const expiring = await createToken(s.deps.store, {
      owner: "ann",
      scopes: ALL,
      createdAt: 0,
      expiresAt: Date.now() + 1_500,
    });
    /** Reads on until it is over. */
    const open = async (token: string) => {
      const { body } = await s.request(path, as(token));
      const reader = (body as ReadableStream<Uint8Array>).getReader();
      const heard: unknown[] = [(await reader.read()).value];
      const over = (async () => {
        for (let part = await reader.read(); !part.done; part = await reader.read()) heard.push(part.value);
      })();
      return { heard, over, leave: () => reader.cancel() };
    };
    const streams = [await open(revoked), await open(revoked), await open(expiring)];
    const other = await open(kept);
    await revokeToken(s.deps.store, revoked);
    const begun = performance.now();
    await Promise.all(streams.map(({ over }) => over));
    expect(performance.now() - begun).toBeLessThan(10_000);
    const before = other.heard.length;
    await s.drain();
    await until("the other goes on", async () => other.heard.length > before);
    await other.leave();
  },
);

test("an expired token is answered with 401 that says so, on the API and at the sign-in", async () => {
  await using s = await webStage(nats);
  const token = await createToken(s.deps.store, {
    owner: "ann",
    scopes: ["read"],
    createdAt: 0,
    expiresAt: 1,
  });
  const answer = await s.ask("/v1/tasks", { token });
  expect(answer).toMatchObject({
    status: 401,
    json: { code: "token_expired", detail: expect.stringMatching(/^The token expired at 1970-01-01T/) },
  });
  expect(answer.headers.get("www-authenticate")).toBe('Bearer error="invalid_token"');
  const body = new URLSearchParams({ token }).toString();
  const headers = { "sec-fetch-site": "same-origin", "content-type": "application/x-www-form-urlencoded" };
  const signIn = await s.ask("/ui/login", { method: "POST", body, headers });
  expect([signIn.status, signIn.text.includes("This token has expired.")]).toEqual([401, true]);
});
