import { afterAll, beforeAll, expect, test } from "vitest";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { createToken, revokeToken } from "../../shared/web/tokens.ts";
import { eventsOf } from "../support/http/sse.ts";
import { webStage } from "../support/http/web.ts";
import { testNats } from "../support/servers/stores.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

test("open streams of a token that is revoked, or expires, end within 10 s, and others go on", async () => {
  await using s = await webStage(nats);
  await s.submit({}, { id: "t", meta: { owner: "ann" } });
  const [kept, revoked] = [await s.token("ann"), await s.token("ann")];
  const expiring = await createToken(s.deps.store, {
    owner: "ann",
    scopes: ["read"],
    createdAt: 0,
    expiresAt: Date.now() + 1_500,
  });
  const open = async (token: string) => {
    const events = eventsOf(await s.request("/v1/tasks/t/events", { token }));
    await events.next();
    return events;
  };
  const over = async (token: string) => {
    const events = await open(token);
    return { ended: events.next() };
  };
  const streams = [await over(revoked), await over(revoked), await over(expiring)];
  const other = await open(kept);
  await revokeToken(s.deps.store, revoked);
  const begun = performance.now();
  expect(await Promise.all(streams.map(({ ended }) => ended))).toEqual(
    streams.map(() => ({ done: true, value: undefined })),
  );
  expect(performance.now() - begun).toBeLessThan(10_000);
  const more = other.next();
  await s.drain();
  expect((await more).done).toBe(false);
  await other.return();
});

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
