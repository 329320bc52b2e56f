import type { LocalNats } from "../../../infra/local/nats-server.ts";
import type { TaskStore } from "../../../shared/ports/store.ts";
import type { Bindings } from "../../../shared/web/context.ts";
import type { Scope } from "../../../shared/web/scopes.ts";
import { ALL, apiStage } from "./api.ts";

export interface Seen {
  readonly status: number;
  readonly text: string;
  readonly headers: Headers;
}

export interface Visitor {
  readonly token: string;
  get(path: string): Promise<Seen>;
  /** As the page's own form sends it, unless told otherwise. */
  post(path: string, fields: Record<string, string>, headers?: Record<string, string>): Promise<Seen>;
  /** The value of a hidden field of a page. */
  field(path: string, name: string): Promise<string>;
}

const OWN = { "sec-fetch-site": "same-origin", origin: "null" };

/** The dashboard in this process, and visitors with cookies. */
export async function pagesStage(nats: LocalNats, run?: () => unknown) {
  const s = await apiStage(nats, "nats-kv", run);
  const bindings: Bindings = { open: async () => s.deps, log: s.deps.log, rateLimit: 6_000_000 };
  const request = async (
    path: string,
    init: RequestInit = {},
    env: Partial<Bindings> = {},
  ): Promise<Seen> => {
    const answer = await s.app.request(path, init, { ...bindings, ...env });
    return { status: answer.status, text: await answer.text(), headers: answer.headers };
  };
  const visitor = async (
    owner: string,
    scopes: readonly Scope[] = ALL,
    agents?: string[],
  ): Promise<Visitor> => {
    const token = await s.token(owner, scopes, agents);
    const cookie = `pawl=${token}`;
    const get = (path: string) => request(path, { headers: { cookie } });
    const field = async (path: string, name: string) => {
      const found = new RegExp(`name="${name}" value="([^"]*)"`).exec((await get(path)).text)?.[1];
      if (found === undefined) throw new Error(`no field ${name} on ${path}`);
      return found;
    };
    return {
      token,
      get,
      field,
      post: async (path, fields, headers = OWN) => {
        const body = new URLSearchParams({ key: await field("/ui", "key"), ...fields });
        return request(path, { method: "POST", headers: { cookie, ...headers }, body });
      },
    };
  };
  return Object.assign(s, { request, visitor, bindings });
}

/** Counts what is asked of a store, by method. */
export function counting(store: TaskStore): { store: TaskStore; asked: string[] } {
  const asked: string[] = [];
  const counted = new Proxy(store, {
    get: (target, name: keyof TaskStore) => {
      const method = target[name];
      if (typeof method !== "function") return method;
      return (...given: never[]) => {
        asked.push(name === "list" ? `list ${given[1]}` : name);
        return (method as (...args: never[]) => unknown)(...given);
      };
    },
  });
  return { store: counted, asked };
}
