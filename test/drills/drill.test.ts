import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, inject, test } from "vitest";
import { targetServers } from "../../infra/drills/stage/servers.ts";
import { checkTarget } from "../../infra/drills/stage/target.ts";
import { drills } from "../../infra/drills/table.ts";
import { submit } from "../../shared/dispatch/submit.ts";
import { mutantNamed } from "../sim/mutants/guards.ts";
import { CLI, startProcess } from "../support/servers/runners.ts";
import { testNats, wired, world } from "../support/servers/stores.ts";
import { guarded } from "./guards.ts";
import { hunt } from "./hunt.ts";

const natsServer = { PAWL_NATS_SERVER: inject("natsServer") };

test("two drills are carried out: all promises hold, and the evidence is written", async () => {
  const folder = mkdtempSync(join(tmpdir(), "pawl-test-"));
  const names = ["crash-before-ack", "redrive-inside-the-window"];
  const run = startProcess([CLI, "drill", ...names, "--report", folder], natsServer);
  expect(await run.exited, run.text()).toBe(0);
  for (const name of names) expect(run.text()).toMatch(new RegExp(`^held +[\\d.]+ s {2}${name}$`, "m"));
  expect(run.text()).toContain("All five promises held in 2 of 2 drills.");
  const [md, html, json] = ["md", "html", "json"].map((form) =>
    readFileSync(join(folder, `drills.${form}`), "utf8"),
  ) as [string, string, string];
  expect(md).toContain("| crash-before-ack | process killed | held |");
  expect(html).toContain("<td>crash-before-ack</td>");
  for (const text of [md, html]) {
    expect(text).toMatch(/effective ack_wait, of the server\D+2 s/);
    expect(text).toMatch(/duplicates that reached execution\D+0/);
    expect(text).toContain("nats-server");
    expect(text).toMatch(/All \d+ sequences? explained|All \d+ sequences explained/);
  }
  expect(JSON.parse(json)).toMatchObject({ results: [{ name: names[0], fate: "held" }, { fate: "held" }] });
});

test("without its guard a drill fails, and names the promise", async () => {
  const quick = guarded.filter(({ isQuick }) => isQuick);
  expect(quick.length).toBeGreaterThan(0);
  for (const one of quick)
    expect(await hunt(one, natsServer, "90s")).toMatchObject({ exitCode: 1, isMissed: true });
});

test("every drill has a guard that it is proven by", () => {
  expect(guarded.map(({ drill }) => drill)).toEqual(drills.map(({ name }) => name));
  for (const { mutant } of guarded) expect(mutantNamed(mutant).changes.length).toBeGreaterThan(0);
});

test("on a target its own settings hold, but nobody is told, and no function is woken", async () => {
  const env = {
    NATS_URL: "nats://example.com:4222",
    PAWL_STORE: "nats-kv",
    PAWL_ACK_WAIT: "45s",
    PAWL_RUN_SECRET: "0123456789abcdef",
    PAWL_WAKE_URL: "https://pawl-{agent}.example.com/run",
    PAWL_WEBHOOK_URL: "https://example.com/told",
    PAWL_WEBHOOK_SECRET: "0123456789abcdef",
    PAWL_TIME_LIMIT: "15m",
  };
  await using servers = targetServers("staging-drills", env);
  expect(servers).toMatchObject({
    isOurs: false,
    settings: { PAWL_ACK_WAIT: "45s", PAWL_MAX_DELIVER: "1000" },
  });
  expect(servers.name).toBe("nats://example.com:4222, namespace staging-drills");
  const [drill] = drills as [(typeof drills)[number]];
  await using place = await servers.open(drill);
  const { NATS_URL, PAWL_STORE, PAWL_ACK_WAIT, PAWL_RUN_SECRET } = env;
  expect(place.env).toEqual({
    ...{ NATS_URL, PAWL_STORE, PAWL_ACK_WAIT, PAWL_RUN_SECRET },
    PAWL_NAMESPACE: "staging-drills",
  });
});

test("a namespace that has anything of others' is no target, and says what", async () => {
  await using nats = await testNats();
  const w = world(nats, "nats-kv");
  await using deps = await wired(w.config);
  const { namespace } = w.config.settings;
  await checkTarget(w.config);
  await deps.bus.ensure({ namespace, agent: "drill", lane: 0, generation: 1 });
  await submit(deps, { agent: "drill", lanes: 1, id: "own", input: {} });
  await checkTarget(w.config);
  const queue = { namespace, agent: "writer", lane: 0, generation: 1 };
  await deps.bus.ensure(queue);
  await expect(checkTarget(w.config)).rejects.toMatchObject({
    code: "usage",
    message: expect.stringMatching(/has a queue of the agent writer, which is not of drills/),
  });
  const other = world(nats, "nats-kv");
  await using others = await wired(other.config);
  const at = Date.now() + 3_600_000;
  await submit(others, { agent: "writer", lanes: 1, id: "theirs", input: {}, at });
  await expect(checkTarget(other.config)).rejects.toThrow(/has task theirs of the agent writer/);
});
