import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { startWorkerd } from "../../infra/local/workerd.ts";
import { ROOT } from "../../infra/project.ts";
import { serve } from "../../shared/runner/serve.ts";
import { scopeNames } from "../../shared/web/scopes.ts";
import { AGENT, agentOf } from "../support/bench.ts";
import { apiStage } from "../support/http/api.ts";
import { launch } from "../support/http/browser.ts";
import { serveHttp } from "../support/http/http.ts";
import { testNats } from "../support/servers/stores.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

/** Bytes of the whole client, minified and gzipped. */
const MOST = 5 * 1_024;

/** As callers' bundlers make it. */
async function bundled(source: string): Promise<string> {
  const { outputFiles } = await build({
    stdin: { contents: source, resolveDir: ROOT, loader: "ts" },
    bundle: true,
    minify: true,
    write: false,
    format: "esm",
    target: "es2022",
    // Nothing of Node is there: what is asked for fails the build.
    platform: "browser",
  });
  return outputFiles[0]?.text ?? "";
}

/** What a caller does, from one end to the other; in this file it only has types. */
const STORY = `
import { createClient, NoResult, Problem } from "./shared/client.ts";
export async function story(url, token, patience) {
  const pawl = createClient({ url, token, patience });
  const task = await pawl.submit("tested", { how: "ask" }, { key: "order-7" });
  const events = [];
  for await (const { kind, data } of task.events()) {
    events.push(kind === "transition" ? data.event : kind);
    if (data.event === "wait") await task.approve("go", { note: "from afar" });
  }
  const again = await pawl.submit("tested", { how: "ask" }, { key: "order-7" });
  const bad = await pawl.submit("nobody", {}).catch((error) => error);
  const list = [];
  for await (const one of pawl.tasks({ pageSize: 1 })) list.push(one.state);
  return {
    result: await task.result({ timeout: "1m" }),
    isSame: again.id === task.id,
    events, list,
    bad: [bad instanceof Problem, bad.name, bad.code, bad.status],
  };
}`;

const TOLD = {
  result: { by: "ann" },
  isSame: true,
  events: ["submit", "claim", "journal", "wait", "signal", "claim", "journal", "complete", "end"],
  list: ["completed"],
  bad: [true, "Problem", "agent_unknown", 422],
};

/** The API on a port, which pages of one origin may call, and a runner beside it. */
async function stage(corsOrigin?: string) {
  const s = await apiStage(nats);
  const agent = agentOf(async ({ approval }) => ({ by: (await approval("go")).by }));
  const token = await s.token("ann", scopeNames);
  const http = await serveHttp(async (request) =>
    s.app.fetch(request, {
      open: async () => s.deps,
      log: s.deps.log,
      rateLimit: 60_000,
      ...(corsOrigin && { corsOrigin }),
    }),
  );
  const over = new AbortController();
  const served = serve(s.deps, { name: AGENT, agent, mode: "forever", stop: over.signal });
  return {
    url: http.url,
    token,
    [Symbol.asyncDispose]: async () => {
      over.abort();
      await served;
      await http[Symbol.asyncDispose]();
      await s.deps[Symbol.asyncDispose]();
    },
  };
}

test("the client is small, and needs nothing but fetch", async () => {
  const code = await bundled('export * from "./shared/client.ts";');
  const bytes = gzipSync(code, { level: 9 }).length;
  console.log(`The client: ${bytes} bytes, minified and gzipped`);
  expect(bytes).toBeLessThan(MOST);
  expect(code).not.toMatch(/\brequire\b|\bprocess\b|\bBuffer\b|node:/);
});

test("a page of an allowed origin calls it from Chromium, and a page of another can't", async () => {
  const code = await bundled(`${STORY}\nglobalThis.story = story;`);
  const page = `<!doctype html><title>A page</title><script type="module">${code}</script>`;
  const site = () => serveHttp(async () => new Response(page, { headers: { "content-type": "text/html" } }));
  await using allowed = await site();
  await using other = await site();
  await using s = await stage(allowed.url);
  const preflight = { origin: allowed.url, "access-control-request-method": "GET" };
  const may = await fetch(`${s.url}/v1/tasks`, { method: "OPTIONS", headers: preflight });
  expect([may.status, may.headers.get("access-control-max-age")]).toEqual([204, "600"]);
  const browser = await launch();
  try {
    const tell = async (address: string) => {
      const tab = await browser.newPage();
      await tab.goto(address);
      await tab.waitForFunction("globalThis.story");
      const call = `story(${JSON.stringify(s.url)}, ${JSON.stringify(s.token)}, "500ms")`;
      return tab.evaluate(`${call}.catch((error) => ({ code: error.code, detail: error.detail }))`);
    };
    expect(await tell(allowed.url)).toEqual(TOLD);
    expect(await tell(other.url)).toEqual({
      code: "no_answer",
      detail: expect.stringMatching(
        /In a page also where the API does not allow its origin: PAWL_CORS_ORIGIN$/,
      ),
    });
  } finally {
    await browser.close();
  }
});

test("a Worker calls it, in workerd", async () => {
  await using s = await stage();
  const folder = mkdtempSync(join(tmpdir(), "pawl-caller-"));
  const file = join(folder, "caller.js");
  const handler =
    "export default { fetch: async (_, env) => Response.json(await story(env.API, env.TOKEN)) };";
  writeFileSync(file, await bundled(`${STORY}\n${handler}`));
  try {
    await using caller = await startWorkerd([{ name: "caller", file }], {
      vars: { API: s.url, TOKEN: s.token },
    });
    expect(await (await fetch(caller.urls.caller as string)).json()).toEqual(TOLD);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
