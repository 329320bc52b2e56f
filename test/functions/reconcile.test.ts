import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { queueOf } from "../../shared/dispatch/dispatch.ts";
import { submit } from "../../shared/dispatch/submit.ts";
import { readReportList } from "../../shared/reconcile/books/reports.ts";
import { writers } from "../../shared/reconcile/page/writers.ts";
import { reconcile } from "../../shared/reconcile/reconcile.ts";
import { observer } from "../support/observer.ts";
import { bundle, deploy, post, varsOf } from "../support/servers/platforms.ts";
import { testNats, world } from "../support/servers/stores.ts";
import { until } from "../support/time/until.ts";

/** Where functions wake each other: it remembers who was woken, and passes it on to the one that is there. */
async function doors() {
  const woken: string[] = [];
  const door = { url: "" };
  const server = createServer((request, response) => {
    woken.push(request.url ?? "");
    const { authorization = "", prefer = "" } = request.headers as Record<string, string>;
    void fetch(`${door.url}/run`, { method: "POST", headers: { authorization, prefer } }).then(
      ({ status }) => response.writeHead(status).end(),
      () => response.writeHead(502).end(),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    door,
    woken,
    wakeUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/{agent}/run`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

test.each([
  ["killed", [600_000, { isLeft: false }]],
  ["with nobody woken by its last slice", [90_000, { isLeft: true }]],
] satisfies [string, [number, object]][])(
  "Workers: out of time it wakes itself; %s, dispatch does",
  async (_, when) => {
    await using nats = await testNats();
    const w = world(nats, "nats-kv", { stopGrace: 1_000, requestTimeout: 1_000 });
    await using deps = await observer(w);
    for (const agent of ["walker", "recorder", "stepper", "asker"])
      await deps.bus.ensure(queueOf(deps, { agent, lane: 0 }));
    await using s = await doors();
    // Told to stop as soon as it begins. One that is woken has half a minute, as Cloudflare gives it.
    const vars = varsOf(w, "cloudflare", { PAWL_WAKE_URL: s.wakeUrl, PAWL_TIME_LIMIT: "2001ms" });
    await using reconciler = await deploy(await bundle("reconcile", "cloudflare"), vars);
    s.door.url = reconciler.url;
    const more = varsOf(w, "cloudflare", { PAWL_WAKE_URL: s.wakeUrl });
    await using dispatch = await deploy(await bundle("dispatch", "cloudflare"), more);
    const made = async () => (await readReportList(deps.store)).past?.length ?? 0;
    const progress = () => deps.store.getRecord("reconcile-progress");
    const isClosed = async () => (await progress())?.text.includes('"done"');

    await submit(deps, { agent: "walker", lanes: 1, id: "t", input: {} });
    expect(await (await post(reconciler.url)).json()).toEqual({ finished: false });
    await until("it has woken itself, and is done", isClosed);
    expect(await made()).toBe(1);
    expect(s.woken).toEqual(["/reconcile/run"]);
    await post(dispatch.url);
    expect(s.woken).toHaveLength(1);

    // Cut off, and nobody is woken. Each time it is as if its last word had been so long ago.
    expect(await reconcile(deps, AbortSignal.abort(), { repair: false, writers })).toBeUndefined();
    const dispatchedAfter = async (ms: number, more: object) => {
      const left = await progress();
      const aged = { ...(JSON.parse(left?.text ?? "") as object), touched: Date.now() - ms, ...more };
      await deps.store.putRecord("reconcile-progress", JSON.stringify(aged), left?.revision);
      await post(dispatch.url);
    };
    await dispatchedAfter(0, {});
    // Somebody may be at it.
    await dispatchedAfter(90_000, { isLeft: false });
    expect(s.woken).toHaveLength(1);
    await dispatchedAfter(...when);
    await until("it is done", isClosed);
    expect(s.woken).toEqual(["/reconcile/run", "/reconcile/run"]);
    expect(dispatch.log()).toContain("reconcile.abandoned");
    expect(reconciler.log()).toContain("reconcile.resumed");
    expect(await made()).toBe(2);
  },
);
