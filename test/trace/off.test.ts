import { readFileSync } from "node:fs";
import { Session } from "node:inspector/promises";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { transform } from "esbuild";
import { afterEach, expect, test, vi } from "vitest";
import { configOf } from "../../functions/wiring/config.ts";
import { tracedOf } from "../../functions/wiring/trace.ts";
import { ROOT } from "../../infra/project.ts";
import { defineAgent } from "../../shared/agent.ts";
import { ensureQueue, queueOf } from "../../shared/dispatch/dispatch.ts";
import { submit } from "../../shared/dispatch/submit.ts";
import type { Deps } from "../../shared/ports/deps.ts";
import type { Trace } from "../../shared/ports/trace.ts";
import { serve } from "../../shared/runner/serve.ts";
import { sealed } from "../../shared/seal/sealed.ts";
import { readVariables } from "../../shared/settings/variables.ts";
import { tracing } from "../../shared/trace/tracing.ts";
import { quickSealer } from "../sim/world/sealer.ts";
import { bundle } from "../support/servers/platforms.ts";
import { CalmWorld } from "../support/servers/simulated.ts";

afterEach(() => {
  vi.restoreAllMocks();
});

/** How often each function of Pawl's was called, as V8 counted: `shared/values/json.ts sha256`. */
async function counted(work: () => Promise<void>): Promise<ReadonlyMap<string, number>> {
  const session = new Session();
  session.connect();
  try {
    await session.post("Profiler.enable");
    await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
    await work();
    const { result } = await session.post("Profiler.takePreciseCoverage");
    await session.post("Profiler.stopPreciseCoverage");
    const calls = new Map<string, number>();
    for (const { url, functions } of result) {
      const [, file] = /\/((?:shared|functions)\/[^?]+)/.exec(url) ?? [];
      for (const { functionName, ranges } of functions) {
        const name = `${file} ${functionName}`;
        if (file !== undefined) calls.set(name, (calls.get(name) ?? 0) + (ranges[0]?.count ?? 0));
      }
    }
    return calls;
  } finally {
    session.disconnect();
  }
}

/** Each method that is called, by its name. */
function counting<T extends object>(target: T, calls: Record<string, number>): T {
  return new Proxy(target, {
    get: (of, name) => {
      const value = Reflect.get(of, name);
      if (typeof value !== "function") return value;
      return (...args: unknown[]) => {
        calls[String(name)] = (calls[String(name)] ?? 0) + 1;
        return (value as (...all: unknown[]) => unknown).apply(of, args);
      };
    },
  });
}

/** A task with so many steps, from its submit to its end, in a world where all that happens follows from its seed. */
async function journey(steps: number, traceOf?: (deps: Deps) => Trace) {
  const world = new CalmWorld();
  const asked: Record<string, number> = {};
  const told: Record<string, number> = {};
  const { settings, process } = world;
  const plain: Deps = {
    store: counting(
      sealed(world.store(), quickSealer, () => {}),
      asked,
    ),
    bus: counting(world.bus(), told),
    clock: process.clock,
    log: () => {},
    settings,
    runner: "r",
    meter: { count: () => {}, flush: async () => {} },
    sealer: quickSealer,
  };
  const trace = traceOf?.(plain);
  const deps: Deps = { ...plain, ...(trace && { trace }) };
  const agent = defineAgent({
    run: async ({ step, effect, log }) => {
      for (let i = 0; i < steps; i++) await step(`s${i}`, () => i);
      await effect("post", { run: () => "sent" });
      log("posted");
      return "done";
    },
  });
  const random = vi.spyOn(crypto, "randomUUID");
  const others = [
    vi.spyOn(globalThis, "fetch"),
    vi.spyOn(crypto, "getRandomValues"),
    vi.spyOn(crypto.subtle, "digest"),
    vi.spyOn(crypto.subtle, "sign"),
  ];
  const calls = await counted(async () => {
    await world.until(ensureQueue(deps, queueOf(deps, { agent: "a", lane: 0 }), "correct"));
    await world.until(submit(deps, { agent: "a", lanes: 1, id: "t", input: {} }));
    const stop = new AbortController().signal;
    expect(await world.until(serve(deps, { name: "a", agent, mode: "drain", stop }))).toEqual({
      completed: 1,
    });
  });
  const traced = [...calls].filter(
    ([name, count]) =>
      count > 0 && /^(shared\/trace\/|shared\/adapters\/otlp|functions\/wiring\/trace)/.test(name),
  );
  const done = {
    asked,
    told,
    traced: traced.map(([name]) => name),
    digests: calls.get("shared/values/json.ts sha256") ?? 0,
    random: random.mock.calls.length,
    others: others.map(({ mock }) => mock.calls.length),
  };
  vi.restoreAllMocks();
  return done;
}

test("off, a task with its steps builds no span and calls none of what traces are made by", async () => {
  const off = await journey(10);
  expect(off.traced).toEqual([]);
  // Of the same journey, traced: what is counted is counted where there is something.
  let spans = 0;
  const traceOf = ({ clock, log, meter }: Deps) =>
    tracing({
      ...{ namespace: "sim", sampling: { ratio: 1, byParent: true }, content: false, every: 60_000 },
      ...{ clock, log, meter },
      send: async (all) => {
        spans += all.length;
        return { kind: "taken", rejected: 0 };
      },
    });
  let trace: Trace | undefined;
  const on = await journey(10, (deps) => {
    trace = traceOf(deps);
    return trace;
  });
  await trace?.flush(1_000);
  expect(spans).toBeGreaterThan(10);
  expect(on.traced).toContain("shared/trace/tracing.ts call");
  // Nothing of it is stored, nor sent by NATS: on or off, the store and the bus are asked for the same.
  expect([on.asked, on.told]).toEqual([off.asked, off.told]);
  expect(on.digests).toBeGreaterThan(off.digests);
});

test("off, a step costs a stamp for its write, and no digest, randomness or request more", async () => {
  const [one, many] = [await journey(1), await journey(11)];
  expect({ ...many, asked: 0, told: 0 }).toEqual({ ...one, asked: 0, told: 0, random: one.random + 10 });
  expect(many.others).toEqual([0, 0, 0, 0]);
  expect(many.asked).toEqual({ ...one.asked, putHead: (one.asked.putHead ?? 0) + 10 });
});

test("off, a connection is wired as if there were no traces, and its log is the one it was given", () => {
  const log = () => {};
  const meter = { count: () => {}, flush: async () => {} };
  const config = configOf(readVariables({ NATS_URL: "nats://127.0.0.1:4222", PAWL_STORE: "nats-kv" }));
  const ids = vi.spyOn(crypto, "randomUUID");
  const wired = tracedOf(config, log, meter, { name: "echo" });
  expect(Object.keys(wired)).toEqual(["log"]);
  expect(wired.log).toBe(log);
  expect(ids).not.toHaveBeenCalled();
});

test("what a bundle carries of it is as many bytes as the docs say, and no package", async () => {
  const { inputs } = await bundle("walker", "cloudflare");
  // The SDK of the model takes OpenTelemetry's API along by itself, and none of what would send anything.
  expect(inputs.filter((path) => /@opentelemetry\/(?!api\/)/.test(path))).toEqual([]);
  const own = inputs.filter((path) =>
    /^shared\/(trace\/|adapters\/otlp\.ts|settings\/telemetry\.ts|values\/traceparent\.ts)|wiring\/trace\.ts/.test(
      path,
    ),
  );
  expect(own).toContain("shared/adapters/otlp.ts");
  const parts = await Promise.all(
    own.map((path) => transform(readFileSync(join(ROOT, path), "utf8"), { loader: "ts", minify: true })),
  );
  const bytes = gzipSync(parts.map(({ code }) => code).join("\n")).length;
  const docs = readFileSync(join(ROOT, "docs/monitoring.md"), "utf8");
  const [, said] = /Off, it costs (\d+) KiB of a function's bundle, gzipped/.exec(docs) ?? [];
  expect(Math.ceil(bytes / 1024), `${bytes} bytes of ${own.join(", ")}`).toBe(Number(said));
});
