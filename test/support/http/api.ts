import type { StoreKind } from "../../../functions/wiring/config.ts";
import type { LocalNats } from "../../../infra/local/nats-server.ts";
import type { AgentContext } from "../../../shared/agent.ts";
import type { Settings } from "../../../shared/settings/settings.ts";
import { createApp } from "../../../shared/web/app.ts";
import { type Scope, scopeNames } from "../../../shared/web/scopes.ts";
import { createToken } from "../../../shared/web/tokens.ts";
import { agentOf, bench } from "../bench.ts";

export const ALL: readonly Scope[] = scopeNames;

/** The API over real servers, in this process. */
export async function apiStage(
  nats: LocalNats,
  kind: StoreKind = "nats-kv",
  run: (context: AgentContext<unknown>) => unknown = () => "done",
  given: Partial<Settings> = {},
) {
  const b = await bench(nats, kind, agentOf(run, { attempts: 1 }), given);
  const app = createApp({
    agents: [
      { name: "tested", lanes: 1 },
      { name: "other", lanes: 1 },
    ],
  });
  const token = (owner: string, scopes: readonly Scope[] = ["submit", "read"], agents?: string[]) =>
    createToken(b.deps.store, { owner, scopes, createdAt: Date.now(), ...(agents && { agents }) });
  const call = async (
    text: string | undefined,
    method: string,
    path: string,
    body?: unknown,
    headers = {},
  ) => {
    const init = {
      method,
      headers: { ...(text !== undefined && { authorization: `Bearer ${text}` }), ...headers },
      ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
    };
    const response = await app.request(path, init, {
      open: async () => b.deps,
      log: b.deps.log,
      rateLimit: 6_000_000,
    });
    const answer = (await response.json().catch(() => undefined)) as Record<string, unknown>;
    return { status: response.status, body: answer, headers: response.headers };
  };
  return Object.assign(b, { app, token, call });
}
