import { existsSync, readFileSync } from "node:fs";
import type { Config } from "../../../functions/wiring/config.ts";
import { messageOf } from "../../../shared/errors/errors.ts";
import { isWebSocket, natsServers } from "../../../shared/settings/servers.ts";
import type { Env } from "../../../shared/settings/variable.ts";
import { agentNames, loadAgent } from "../../agents.ts";
import type { Live } from "./live.ts";

export async function secretsMissing(folder: string, env: Env): Promise<Live["secrets"]> {
  const all = (await agentNames(folder)).map(async (agent) => {
    // One that is broken says so where it is loaded to be run.
    const { secrets } = await loadAgent(agent, folder).catch(() => ({ secrets: [] as readonly string[] }));
    return { agent, missing: secrets.filter((name) => !env[name]) };
  });
  return (await Promise.all(all)).filter(({ missing }) => missing.length > 0);
}

/** The address that Workers have, where it is no placeholder. */
export async function unreached({ nats }: Config, unseen: string[]): Promise<Live["unreached"]> {
  const file = "wrangler.toml";
  if (
    !existsSync(file) ||
    !/\bNATS_URL\s*=\s*"wss?:\/\/(?![^"]*example\.com)/.test(readFileSync(file, "utf8"))
  )
    return [];
  try {
    if (typeof WebSocket === "undefined") throw new Error("this Node has no WebSocket");
    const { cloudflare } = await import("../../deploy/cloudflare.ts");
    const { NATS_URL = "" } = cloudflare().settings;
    const urls = natsServers(NATS_URL).filter((url) => isWebSocket(url) && url !== nats.url);
    const asked = await Promise.all(urls.map(async (url) => ({ url, reason: await whyUnreached(url) })));
    return asked.flatMap(({ url, reason }) => (reason === undefined ? [] : [{ url, reason }]));
  } catch (error) {
    unseen.push(`NATS_URL in ${file}: ${messageOf(error)}`);
    return [];
  }
}

/** Undefined where a WebSocket opens: who may come in is NATS's affair. */
export function whyUnreached(url: string, timeout = 5_000): Promise<string | undefined> {
  return new Promise((resolve) => {
    const socket = new WebSocket(url);
    const timer = setTimeout(() => done(`no answer within ${timeout} ms`), timeout);
    const done = (reason?: string) => {
      clearTimeout(timer);
      resolve(reason);
      socket.close();
    };
    socket.onopen = () => done();
    socket.onerror = (event) => done((event as { message?: string }).message || "it refuses the connection");
  });
}
