import type { StoreKind } from "../../../functions/wiring/config.ts";
import type { LocalNats } from "../../../infra/local/nats-server.ts";
import type { Settings } from "../../../shared/settings/settings.ts";
import type { Bindings } from "../../../shared/web/context.ts";
import { apiStage } from "./api.ts";

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** Undefined where it is no JSON. */
  readonly json: Record<string, unknown> | undefined;
}

export interface Asked {
  readonly token?: string | undefined;
  readonly method?: string;
  /** Text and bytes are sent as they are, anything else as JSON. */
  readonly body?: unknown;
  readonly headers?: Record<string, string>;
  /** What the deployment says: limits, origins. */
  readonly env?: Partial<Bindings>;
}

/** The API in this process, for tests that ask more of it than its rate limit allows. */
export async function webStage(
  nats: LocalNats,
  kind: StoreKind = "nats-kv",
  run?: () => unknown,
  given?: Partial<Settings>,
) {
  const s = await apiStage(nats, kind, run, given);
  const bindings: Bindings = { open: async () => s.deps, log: s.deps.log, rateLimit: 6_000_000 };
  const request = async (path: string, { token, method = "GET", body, headers, env }: Asked = {}) => {
    const init = {
      method,
      headers: { ...(token !== undefined && { authorization: `Bearer ${token}` }), ...headers },
      ...(body !== undefined && { body: isRaw(body) ? body : JSON.stringify(body) }),
    };
    return s.app.request(path, init, { ...bindings, ...env });
  };
  const ask = async (path: string, asked?: Asked): Promise<Answer> => read(await request(path, asked));
  return Object.assign(s, { request, ask, readAnswer: read });
}

function isRaw(body: unknown): body is string | Uint8Array<ArrayBuffer> {
  return typeof body === "string" || body instanceof Uint8Array;
}

export async function read(response: Response): Promise<Answer> {
  const { status, headers } = response;
  const text = await response.text();
  try {
    return { status, headers, text, json: JSON.parse(text) as Record<string, unknown> };
  } catch {
    return { status, headers, text, json: undefined };
  }
}
