import { once } from "node:events";
import { jetstreamManager } from "@nats-io/jetstream";
import { nanos } from "@nats-io/nats-core";
import { expect, test } from "vitest";
import { cuttingProxy } from "../../../infra/drills/faults/proxy.ts";
import { PawlError } from "../../../shared/errors/errors.ts";
import { consumerName, streamName } from "../../../shared/task/names.ts";
import { away } from "../faults/disturb.ts";
import { observer } from "../observer.ts";
import { testNats, world } from "../servers/stores.ts";
import { patiently, until } from "./until.ts";

/** Fails with each of these in turn, then answers. */
function afterErrors<T>(errors: readonly unknown[], answer: T) {
  let asked = 0;
  return async (): Promise<T> => {
    const error = errors[asked++];
    if (error) throw error;
    return answer;
  };
}

test("an answer that does not come in time is waited for again; any other error ends the wait", async () => {
  const over = AbortSignal.timeout(0);
  await once(over, "abort");
  const late = [
    away(),
    new PawlError("bus_unavailable", "no answer"),
    await fetch("http://127.0.0.1", { signal: over }).catch((error: unknown) => error),
    new Error("wrapped", { cause: Object.assign(new Error("timeout"), { name: "TimeoutError" }) }),
  ];
  expect(await until("it answers", afterErrors(late, "yes"))).toBe("yes");
  expect(await patiently(afterErrors(late, undefined))).toBeUndefined();
  const refused = new PawlError("store_refused", "PERMISSION_DENIED");
  await expect(until("it answers", afterErrors([away(), refused], "yes"))).rejects.toBe(refused);
});

test("what never comes true is named, with the last error if there was one", async () => {
  const never = () => Promise.reject(away());
  await expect(until("it answers", never, 1)).rejects.toThrow("it answers (at last: no answer)");
  await expect(until("it is so", async () => false, 1)).rejects.toThrow(/it is so$/);
});

test("who looks on is not hurried by the short lease of those who are looked at", async () => {
  await using nats = await testNats();
  await using proxy = await cuttingProxy(nats.url);
  const w = world(nats, "nats-kv", { ackWait: 1_000 });
  await using deps = await observer({ ...w, config: { ...w.config, nats: { url: proxy.url } } });
  const queue = { namespace: w.config.settings.namespace, agent: "a", lane: 0, generation: 1 };
  await deps.bus.ensure(queue);
  const { config } = await (await jetstreamManager(deps.nc)).consumers.info(
    streamName(queue),
    consumerName(queue),
  );
  expect(config.ack_wait).toBe(nanos(1_000));
  proxy.stall(true);
  const [read, asked] = [deps.store.get("none"), deps.bus.state(queue)];
  setTimeout(() => proxy.stall(false), 1_000);
  expect(await read).toBeUndefined();
  expect(await asked).toEqual({ pending: 0, inFlight: 0 });
  proxy.cut(true);
  const second = deps.store.get("none");
  setTimeout(() => proxy.cut(false), 200);
  expect(await second).toBeUndefined();
});
