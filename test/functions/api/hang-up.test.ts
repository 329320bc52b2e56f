import { connect } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { TARGETS } from "../../../infra/build/targets.ts";
import type { LocalNats } from "../../../infra/local/nats-server.ts";
import { createToken } from "../../../shared/web/tokens.ts";
import { ALL } from "../../support/http/api.ts";
import { webStage } from "../../support/http/web.ts";
import { bundle, type Deployed, deploy, varsOf } from "../../support/servers/platforms.ts";
import { testNats, wired, world } from "../../support/servers/stores.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

/** Says that 1,000 bytes follow, sends a few, and is gone. */
function hangUp({ url }: Deployed, path: string, headers: readonly string[]): Promise<void> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname, () => {
      socket.write([`POST ${path} HTTP/1.1`, "host: localhost", ...headers, "", '{"agent": '].join("\r\n"));
      // Its beginning is there: whoever reads it waits for the rest.
      setTimeout(() => socket.destroy(), 300);
    });
    socket.on("error", reject).on("close", () => resolve());
  });
}

test.each(TARGETS)(
  "a caller of %s that hangs up in the middle of its body is no error in the log",
  async (target) => {
    const w = world(nats, "nats-kv");
    await using deps = await wired(w.config);
    const token = await createToken(deps.store, { owner: "ann", scopes: ALL, createdAt: 0 });
    await using api = await deploy(await bundle("api", target), varsOf(w, target));
    const bearer = `authorization: Bearer ${token}`;
    const asks = async () =>
      (await fetch(`${api.url}/v1/tasks`, { headers: { authorization: `Bearer ${token}` } })).status;
    expect(await asks()).toBe(200);
    const json = "content-type: application/json";
    await hangUp(api, "/v1/tasks", [bearer, json, "content-length: 1000"]);
    await hangUp(api, "/ui/login", ["sec-fetch-site: same-origin", "content-length: 1000"]);
    if (target === "cloudflare") {
      await hangUp(api, "/v1/tasks", [bearer, json, "transfer-encoding: chunked"]);
      await hangUp(api, "/v1/tasks/t/cancel", [bearer, json, "content-length: 1000"]);
    }
    // Answered after those: what they left in the log is there.
    expect(await asks()).toBe(200);
    expect(api.log()).not.toMatch(/ERROR|BadRequestError|function\.unexpected|^\s+at /m);
  },
);

test("a body that does not come whole is the sender's affair, however it is read", async () => {
  await using s = await webStage(nats);
  const token = await s.token("ann");
  const broken = () =>
    new ReadableStream({
      start: (controller) => controller.enqueue(new TextEncoder().encode('{"agent": ')),
      pull: (controller) => controller.error(new TypeError("Network connection lost.")),
    });
  for (const [path, headers] of [
    ["/v1/tasks", { authorization: `Bearer ${token}` }],
    ["/v1/tasks", { authorization: `Bearer ${token}`, "content-length": "1000" }],
    ["/ui/login", { "sec-fetch-site": "same-origin", "content-length": "1000" }],
    ["/ui/login", { "sec-fetch-site": "same-origin" }],
  ] as const) {
    const init = { method: "POST", headers, body: broken(), duplex: "half" } as const;
    const answer = await s.app.request(path, init, { open: async () => s.deps, log: s.deps.log });
    expect(answer.status, path).toBe(400);
  }
  expect(s.deps.logged.filter(({ level }) => level !== "info")).toEqual([]);
});
