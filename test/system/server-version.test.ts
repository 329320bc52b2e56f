import { expect, test } from "vitest";
import { workerJob } from "../../functions/wiring/worker.ts";
import { cuttingProxy } from "../../infra/drills/faults/proxy.ts";
import { isEnough } from "../../shared/adapters/jetstream/nats-version.ts";
import { defineAgent } from "../../shared/agent.ts";
import { submit } from "../../shared/dispatch/submit.ts";
import { serve } from "../../shared/runner/serve.ts";
import { AGENT, bench } from "../support/bench.ts";
import { pawl } from "../support/servers/runners.ts";
import { testNats, wired, world } from "../support/servers/stores.ts";
import { until } from "../support/time/until.ts";

/** As long as the real one, so that it fits a WebSocket's frame too. */
const old = (info: string) =>
  info.replace(/"version":"([^"]+)"/, (_, is: string) => `"version":"${"2.9.1".padEnd(is.length, "0")}"`);

const REFUSED = /is version 2\.9\.10*, and 2\.10 is the least/;

test("what counts as new enough", () => {
  for (const version of ["2.10.0", "2.10.27", "v2.15.1", "2.12.0-RC.1", "3.0.0"])
    expect(isEnough(version), version).toBe(true);
  for (const version of ["2.9.25", "1.4.1", "0.0.0", "", "unknown"])
    expect(isEnough(version), version).toBe(false);
});

test("a server older than 2.10 is refused by submit, run, reconcile and a function, before anything is made there", async () => {
  await using nats = await testNats();
  await using proxy = await cuttingProxy(nats.url);
  await using web = await cuttingProxy(nats.wsUrl);
  proxy.greet(old);
  web.greet(old);
  const w = world(nats, "nats-kv");
  const env = { ...w.env, NATS_URL: proxy.url };
  const commands = [["submit", "recorder", "{}"], ["run", "recorder", "--drain"], ["reconcile"]];
  await Promise.all(
    commands.map(async (args) => {
      const command = pawl(w, args, env);
      expect(await command.exited, command.text()).toBe(1);
      expect(command.text()).toMatch(REFUSED);
      expect(command.text()).toContain("docs/errors.md#server_too_old");
    }),
  );
  const secret = "a-secret-of-the-tests";
  const worker = workerJob({ name: "recorder", run: async () => ({}) });
  const request = new Request("https://x/run", {
    method: "POST",
    headers: { authorization: `Bearer ${secret}` },
  });
  const wsEnv = { ...env, NATS_URL: web.url.replace("nats:", "ws:"), PAWL_RUN_SECRET: secret };
  const answer = await worker.fetch(request, wsEnv, { waitUntil: () => {} });
  expect(answer.status).toBe(503);
  expect(await answer.json()).toMatchObject({
    code: "server_too_old",
    detail: expect.stringMatching(REFUSED),
  });
  const { jetstreamManager } = await import("@nats-io/jetstream");
  await using deps = await wired(world(nats, "nats-kv").config);
  const jsm = await jetstreamManager(deps.nc);
  const names: string[] = [];
  for await (const name of jsm.streams.names()) names.push(name.toLowerCase());
  expect(names.filter((name) => name.includes(w.config.settings.namespace))).toEqual([]);
});

test("a reconnect to an older server: all is refused and said, and goes on when a newer one is back", async () => {
  await using nats = await testNats();
  await using proxy = await cuttingProxy(nats.url);
  const runs: string[] = [];
  const agent = defineAgent({ run: ({ id }) => void runs.push(id) });
  await using b = await bench(nats, "nats-kv", agent, { ackWait: 2_000 });
  await using deps = await wired({ ...b.world.config, nats: { url: proxy.url } });
  const stop = new AbortController();
  const served = serve(deps, { name: AGENT, agent, mode: "forever", stop: stop.signal });
  await b.submit({}, { id: "before" });
  // Recorded and acked too: cut off before that, it would rightly be run again.
  await until("the first is done", async () => {
    const { pending, inFlight } = await b.deps.bus.state(b.queue);
    return runs.includes("before") && pending + inFlight === 0;
  });

  proxy.greet(old);
  proxy.cut(true);
  proxy.cut(false);
  const said = (event: string) => deps.logged.find((line) => line.event === event);
  await until("it is said", async () => said("nats.too-old") !== undefined);
  expect(said("nats.too-old")).toMatchObject({
    level: "error",
    fields: { reason: expect.stringMatching(REFUSED) },
  });
  const wanted = { agent: AGENT, lanes: 1, id: "during", input: {} };
  await expect(submit(deps, wanted)).rejects.toMatchObject({ code: "server_too_old" });
  await expect(deps.bus.ensure(b.queue)).rejects.toMatchObject({ code: "server_too_old" });
  await expect(deps.bus.inspect(b.queue)).rejects.toMatchObject({ code: "server_too_old" });
  await b.submit({}, { id: "during" });
  await until("the runner is refused", async () => said("pull.failed") !== undefined);
  expect(runs).toEqual(["before"]);

  proxy.greet(undefined);
  proxy.cut(true);
  proxy.cut(false);
  await until("the second has run", async () => runs.includes("during"));
  expect(said("nats.new-enough")).toBeDefined();
  stop.abort(new Error("told to stop"));
  // What it got from the older server it left to the next delivery.
  expect(await served).toMatchObject({ completed: 2 });
  expect(runs).toEqual(["before", "during"]);
});
