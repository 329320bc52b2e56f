import { connect } from "node:net";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, expect, test } from "vitest";
import { TARGETS } from "../../../infra/build/targets.ts";
import type { LocalNats } from "../../../infra/local/nats-server.ts";
import { createToken } from "../../../shared/web/tokens.ts";
import { ALL } from "../../support/http/api.ts";
import { bundle, type Deployed, deploy, varsOf } from "../../support/servers/platforms.ts";
import { testNats, wired, world } from "../../support/servers/stores.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

/** Sends bytes as they are, and reads to the end of what comes back. */
function sent({ url }: Deployed, request: string): Promise<string> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    let text = "";
    const socket = connect(Number(port), hostname, () => socket.write(request));
    socket.on("data", (chunk) => {
      text += chunk;
    });
    socket.on("error", reject).on("close", () => resolve(text));
  });
}

const head = (line: string, ...more: string[]) => [line, ...more, "connection: close", "", ""].join("\r\n");
/** Whoever of ours has answered: the app, or what stands before it. */
const guarded = (answer: string) => {
  expect(answer).toMatch(/^x-content-type-options: nosniff\r$/im);
  expect(answer).toMatch(/^cache-control: no-store\r$/im);
};
const get = (path: string, host = "x") => head(`GET ${path} HTTP/1.1`, `host: ${host}`);
const posted = (body: string, type = "application/json") =>
  `${head("POST /v1/tasks HTTP/1.1", "host: x", `content-type: ${type}`, `content-length: ${body.length}`)}${body}`;

test.each(TARGETS)(
  "whatever strangers send to %s is no failure of ours, and tells them nothing of it",
  async (target) => {
    const w = world(nats, "nats-kv");
    await using api = await deploy(await bundle("api", target), varsOf(w, target));
    const requests = {
      "two slashes": get("//"),
      "another host in the path": get("//127.0.0.1/v1/tasks"),
      "half an address": get("//["),
      "an absolute path": get("http://elsewhere/v1/tasks"),
      "a path that is no text": get("/v1/tasks/%ff"),
      "a long path": get(`/${"a/".repeat(3_000)}`),
      "a host with a space": get("/v1/tasks", "a b"),
      "half a host": get("/v1/tasks", "["),
      "no host": get("/v1/tasks", ""),
      "a method of a web server": head("TRACE /v1/tasks HTTP/1.1", "host: x"),
      "a method of nobody": head("PROPFIND /v1/tasks HTTP/1.1", "host: x"),
      everything: head("OPTIONS * HTTP/1.1", "host: x"),
      "broken JSON": posted("{oops"),
      "a number": posted("5"),
      "no charset": posted("{}", "application/json; charset=x-none"),
      "no type": posted("{}", "\t;;"),
      "a form": posted(`a=${"[a]".repeat(200)}`, "application/x-www-form-urlencoded"),
      "an old token": head(
        "GET /v1/tasks HTTP/1.1",
        "host: x",
        `authorization: Bearer pawl_${"a".repeat(43)}`,
      ),
    };
    for (const [what, request] of Object.entries(requests)) {
      const answer = await sent(api, request);
      const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1]);
      expect([status >= 400, status < 500], `${what}: ${answer}`).toEqual([true, true]);
      if (answer.includes("application/problem+json")) guarded(answer);
      expect(answer, what).not.toMatch(/node_modules|\bat .*:\d+:\d+|crash|127\.0\.0\.1:\d/i);
    }
    expect(await sent(api, get("/health"))).toMatch(/^HTTP\/1\.1 200/);
  },
);

test.each(TARGETS)(
  "a name in the path is no host to %s: it is answered like any other path",
  async (target) => {
    const w = world(nats, "nats-kv");
    await using deps = await wired(w.config);
    const token = await createToken(deps.store, { owner: "ann", scopes: ALL, createdAt: 0 });
    await using api = await deploy(await bundle("api", target), varsOf(w, target));
    const asked = (path: string, host = "x") =>
      sent(api, head(`GET ${path} HTTP/1.1`, `host: ${host}`, `authorization: Bearer ${token}`));
    expect(await asked("/v1/tasks")).toMatch(/^HTTP\/1\.1 200/);
    expect(await asked("//localhost/v1/tasks")).toMatch(
      /^HTTP\/1\.1 404[\s\S]*There is no \/\/localhost\/v1\/tasks here/,
    );
  },
);

test("Cloud Run: a body that would fill the memory is refused before anyone reads it", async () => {
  const w = world(nats, "nats-kv");
  await using api = await deploy(await bundle("api", "gcp"), varsOf(w, "gcp"));
  await using deps = await wired(w.config);
  const token = await createToken(deps.store, { owner: "ann", scopes: ALL, createdAt: 1 });
  const { namespace, generation } = w.config.settings;
  await deps.bus.ensure({ namespace, agent: "recorder", lane: 0, generation });
  const bomb = gzipSync(Buffer.alloc(5_000_000, " "));
  const send = (body: Buffer | string, headers: Record<string, string> = {}) =>
    fetch(`${api.url}/v1/tasks`, {
      method: "POST",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json", ...headers },
      body: body as string,
    });
  for (const [answer, status] of [
    [await send(bomb, { "content-encoding": "gzip" }), 415],
    [await send(" ".repeat(3_000_000)), 413],
  ] as const) {
    expect(answer.status).toBe(status);
    expect(answer.headers.get("cache-control")).toBe("no-store");
    expect(answer.headers.get("x-content-type-options")).toBe("nosniff");
  }
  const chunked = head("POST /run HTTP/1.1", "host: x", "transfer-encoding: chunked");
  const unsized = await sent(api, `${chunked}0\r\n\r\n`);
  expect(unsized).toMatch(/ 411 /);
  guarded(unsized);
  const traced = await sent(api, head("TRACE /v1/tasks HTTP/1.1", "host: x"));
  expect(traced).toMatch(/ 404 [\s\S]*There is no TRACE here/);
  guarded(traced);
  // What is small enough is ours to answer, whatever it says it is.
  for (const [body, status] of [
    ["{oops", 422],
    ['{"agent":"recorder","input":{}}', 201],
  ] as const) {
    const answer = await send(body);
    expect([answer.status, answer.headers.get("content-type")]).toEqual([
      status,
      status === 201 ? "application/json" : "application/problem+json",
    ]);
  }
});

/** Writes a body of so many bytes after the answer has come, as those do who read nothing before they have written all. */
async function written({ url }: Deployed, said: number, bytes: number) {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true });
  const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  let error: Error | undefined;
  socket.on("error", (thrown) => {
    error = thrown;
  });
  const answer = new Promise<string>((resolve) => socket.once("data", (chunk) => resolve(chunk.toString())));
  socket.write(head("POST /v1/tasks HTTP/1.1", "host: x", `content-length: ${said}`));
  const status = Number((await answer).slice("HTTP/1.1 ".length).slice(0, 3));
  const piece = Buffer.alloc(64 * 1024, " ");
  for (let left = bytes; left > 0 && !error; left -= piece.length)
    await new Promise((resolve) => socket.write(piece.subarray(0, left), resolve));
  socket.end();
  await closed;
  return { status, error };
}

test("Cloud Run: who is refused can send the rest of the body, though not without end", async () => {
  const w = world(nats, "nats-kv");
  await using api = await deploy(await bundle("api", "gcp"), varsOf(w, "gcp"));
  const mega = 1024 * 1024;
  expect(await written(api, 16 * mega, 16 * mega)).toEqual({ status: 413, error: undefined });
  expect(await written(api, 999 * mega, 64 * mega)).toEqual({ status: 413, error: expect.any(Error) });
});
