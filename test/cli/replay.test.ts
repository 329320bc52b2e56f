import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { queueOf } from "../../shared/dispatch/dispatch.ts";
import { submit } from "../../shared/dispatch/submit.ts";
import { pawl } from "../support/servers/runners.ts";
import { testNats, wired, world } from "../support/servers/stores.ts";
import { tempAgents } from "../support/temp-agents.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

const agents = tempAgents();
const changed = join(agents, "changed");
const journals = join(agents, "journals");
const { agentModule } = inject("programs");
const source = (step: string, version: number) => `import { appendFileSync } from "node:fs";
import { defineAgent } from "${agentModule}";
export default defineAgent({
  version: ${version},
  secrets: ["BOARD_TOKEN"],
  run: async ({ input, step, effect, sleep }) => {
    console.log("noise of the author's");
    void Promise.reject(new Error("forgotten"));
    const read = await step("${step}", () => input.who + " " + process.env.BOARD_TOKEN);
    if (input.waits) await sleep("1h");
    return effect("post", { run: () => { appendFileSync(process.env.POSTS, "posted"); return read; } });
  },
});\n`;

test("journals are exported without secrets, replayed without an effect, and checked against other code", async () => {
  mkdirSync(changed);
  writeFileSync(join(agents, "poster.ts"), source("read", 1));
  writeFileSync(join(changed, "poster.ts"), source("look", 2));
  const posts = join(agents, "posts");
  writeFileSync(posts, "");
  const w = world(nats, "nats-kv");
  await using deps = await wired(w.config);
  await deps.bus.ensure(queueOf(deps, { agent: "poster", lane: 0 }));
  const env = { PAWL_AGENTS_DIR: agents, BOARD_TOKEN: "token-of-the-board", POSTS: posts };
  const run = async (...args: string[]) => {
    const command = pawl(w, args, env);
    // What the author's code prints, or forgets to await, is not in the answer.
    let out = "";
    command.child.stdout?.on("data", (chunk: Buffer) => {
      out += chunk.toString();
    });
    return { code: await command.exited, out, text: command.text() };
  };
  const who = "ann@customer.example";
  await submit(deps, { agent: "poster", lanes: 1, id: "done", input: { who } });
  await submit(deps, { agent: "poster", lanes: 1, id: "open", input: { who, waits: true } });
  await run("run", "poster", "--drain");
  expect(readFileSync(posts, "utf8")).toBe("posted");
  const before = await Promise.all(["done", "open"].map((id) => deps.store.get(id)));

  const [open, exported, redacted, other, nothing, wrong] = await Promise.all([
    run("replay", "open"),
    run("journal", "export", "--agent", "poster", "--to", journals),
    run("journal", "export", "open", "--redact"),
    run("replay", "open", "--against", changed, "--json"),
    run("replay", "nobody"),
    run("replay", "open", "--allow", "calls,looks"),
  ]);
  expect(open).toMatchObject({ code: 0, out: expect.stringContaining("  journal  step read#1\n") });
  expect(open.text).toMatch(
    / {2}HERE {5}wait sleep#1: it would sleep until \S+Z\nit stops here, at wait sleep#1\. Nothing was done\n/,
  );
  expect(exported).toMatchObject({
    code: 0,
    text: expect.stringMatching(/done\.json: poster, completed, 3 entries/),
  });
  const file = readFileSync(join(journals, "done.json"), "utf8");
  expect(file).toContain(`${who} [secret BOARD_TOKEN]`);
  expect(file + redacted.text).not.toContain("token-of-the-board");
  expect(redacted.text).not.toContain("ann@");
  expect(other.code).toBe(1);
  expect(JSON.parse(other.out)).toMatchObject({ differences: [{ kind: "calls" }] });
  expect([nothing.code, wrong.code]).toEqual([1, 2]);
  expect(wrong.text).toMatch(/--allow looks: it should be some of agent, input, calls/);

  const [same, against] = await Promise.all([
    run("replay", `${journals}/`),
    run("replay", `${journals}/`, "--against", changed),
  ]);
  expect(same).toMatchObject({ code: 0, out: "2 replayed, none differs\n" });
  expect(same.text).toMatch(/noise of the author's\n/);
  expect(same.text).toMatch(/agent\.unhandled-rejection reason=forgotten/);
  expect(against).toMatchObject({ code: 1, text: expect.stringContaining("2 replayed, 2 different") });
  expect(against.text).toMatch(
    /done\.json: done of poster\nDIFFERENT \(calls\): Call 1 of the handler is step look#1.*version 1 .* version 2/,
  );
  // Nothing was posted, and no document was touched.
  expect(readFileSync(posts, "utf8")).toBe("posted");
  expect(await Promise.all(["done", "open"].map((id) => deps.store.get(id)))).toEqual(before);
});
