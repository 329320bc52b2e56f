import { afterAll, beforeAll, expect, test } from "vitest";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import type { AuditEntry } from "../../shared/audit/entry.ts";
import { queueOf } from "../../shared/dispatch/dispatch.ts";
import { submit } from "../../shared/dispatch/submit.ts";
import { sha256 } from "../../shared/values/json.ts";
import { createToken, findToken } from "../../shared/web/tokens.ts";
import { pawl } from "../support/servers/runners.ts";
import { testNats, wired, world } from "../support/servers/stores.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

async function stage() {
  const w = world(nats, "nats-kv");
  const deps = await wired(w.config);
  await deps.bus.ensure(queueOf(deps, { agent: "recorder", lane: 0 }));
  const run = async (...args: string[]) => {
    const command = pawl(w, args, { PAWL_ACTOR: "jo@desk" });
    return { code: await command.exited, text: command.text() };
  };
  return { deps, run, [Symbol.asyncDispose]: () => deps[Symbol.asyncDispose]() };
}

const jsonLines = <T>(text: string) =>
  text
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line) as T);

test("what commands do is in the trail, with who called them; it can be exported, and verified", async () => {
  await using s = await stage();
  expect((await s.run("audit")).text).toBe("nothing in the trail\n");
  await submit(s.deps, { agent: "recorder", lanes: 1, id: "t", input: {} });
  expect((await s.run("cancel", "t")).code).toBe(0);
  expect((await s.run("dlq", "redrive", "t")).code).toBe(1);
  const { history } = (await s.deps.store.get("t"))?.task ?? { history: [] };
  expect(history.at(-1)).toMatchObject({ event: "cancel", by: "jo@desk via cli" });

  const listed = await s.run("audit");
  expect(listed.text.trim().split("\n")).toEqual([
    expect.stringMatching(/^ *4 .* redrive +t +refused illegal_transition +by jo@desk via cli$/),
    expect.stringMatching(/^ +2 .* cancel +t +done +by jo@desk via cli$/),
  ]);
  const exported = jsonLines<AuditEntry>((await s.run("audit", "--all", "--json")).text);
  expect(exported.map(({ n, op, outcome }) => [n, op, outcome])).toEqual([
    [4, "redrive", "refused"],
    [3, "redrive", "asked"],
    [2, "cancel", "done"],
    [1, "cancel", "asked"],
  ]);
  const some = await s.run("audit", "--op", "cancel", "--since", "1h", "--limit", "1");
  expect(some.text).toMatch(/^ +2 .*\nmore: --cursor 2, or --all\n$/);
  for (const wrong of [
    ["--limit", "0"],
    ["--since", "soon"],
    ["--op", "rm"],
    ["--cursor", "x"],
    ["--anchor", "1:x"],
  ])
    expect((await s.run("audit", ...wrong)).code, wrong.join(" ")).toBe(2);

  const verified = await s.run("audit", "--verify", "--json");
  const { anchor } = jsonLines<{ anchor: string }>(verified.text)[0] as { anchor: string };
  expect(anchor).toMatch(/^4:/);
  expect(await s.run("audit", "--verify", "--anchor", anchor)).toMatchObject({
    code: 0,
    text: expect.stringContaining("the trail is as it was written: 4 entries, 1 to 4") as string,
  });
  const { text, revision } = (await s.deps.store.getRecord("audit")) as { text: string; revision: string };
  await s.deps.store.putRecord("audit", text.replace('"task":"t"', '"task":"u"'), revision);
  expect(await s.run("audit", "--verify")).toMatchObject({
    code: 1,
    text: expect.stringContaining("Entry 1 was changed") as string,
  });
});

test("tokens: made with an end, listed without anything secret, revoked by their id", async () => {
  await using s = await stage();
  const { store } = s.deps;
  expect((await s.run("token", "list")).text).toBe("no tokens\n");
  const made = await s.run(
    "token",
    "create",
    "--owner",
    "shop",
    "--agents",
    "recorder",
    "--expires",
    "30d",
    "--json",
  );
  const { token, id } = jsonLines<{ token: string; id: string }>(made.text)[0] as {
    token: string;
    id: string;
  };
  const found = await findToken(store, token);
  expect(found).toMatchObject({ id, owner: "shop", agents: ["recorder"] });
  expect((found?.expiresAt ?? 0) - (found?.createdAt ?? 0)).toBe(30 * 86_400_000);
  await createToken(store, { owner: "old", scopes: ["read"], createdAt: 0, expiresAt: 1 });
  await store.putText(`token-use-${id}`, String(Date.UTC(2026, 10, 18, 9, 30)));

  const { text } = await s.run("token", "list");
  const [head, first, second] = text.trim().split("\n");
  expect(head).toMatch(/^id +owner +scopes +agents +created +expires +last used$/);
  expect(first).toMatch(/^tok_[0-9a-f]{16} +old +read +all +1970-01-01T00:00 +expired +not yet$/);
  expect(second).toMatch(
    new RegExp(`^${id} +shop +submit,read +recorder +\\S+ +\\d{4}-\\S+ +2026-11-18T09:30$`),
  );
  const json = await s.run("token", "list", "--owner", "shop", "--json");
  expect(jsonLines(json.text)).toEqual([
    expect.objectContaining({ id, owner: "shop", expired: false, usedAt: Date.UTC(2026, 10, 18, 9, 30) }),
  ]);
  for (const shown of [text, json.text]) {
    expect(shown).not.toContain(token);
    expect(shown).not.toContain(sha256(token).slice(0, 20));
  }

  expect(await s.run("token", "revoke", id)).toMatchObject({ code: 0, text: `revoked ${id} of shop\n` });
  expect(await findToken(store, token)).toBeUndefined();
  for (const none of [id, "tok_0000000000000000", "pawl_short", token])
    expect((await s.run("token", "revoke", none)).code, none).toBe(2);
  // What may be a secret that was not copied whole is not shown.
  expect((await s.run("token", "revoke", "pawl_short")).text).not.toContain("pawl_short");
  for (const wrong of ["soon", "0d"])
    expect((await s.run("token", "create", "--owner", "x", "--expires", wrong)).code).toBe(2);
  const trail = jsonLines<AuditEntry>((await s.run("audit", "--json")).text);
  expect(trail.filter(({ outcome }) => outcome === "done").map(({ op, token }) => [op, token])).toEqual([
    ["token revoke", id],
    ["token create", id],
  ]);
  expect(JSON.stringify(trail)).not.toContain(token);
});
