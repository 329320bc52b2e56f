import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { isAuthorised } from "../../../functions/wiring/run.ts";

export interface Bell extends AsyncDisposable {
  /** PAWL_WAKE_URL of every function and command here. */
  readonly url: string;
}

/**
 * Where functions are woken. It is in dev itself and not in a function: a function that is being replaced would miss the
 * call, and what it was called for would wait for cron. `ring`: whether there is such a function; not waited for.
 */
export async function startBell(secret: string, ring: (name: string) => boolean): Promise<Bell> {
  const server = createServer(async (request, response) => {
    request.resume();
    const answer = (status: number, body: object) =>
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
    const [, name] = /^\/([^/]+)\/run$/.exec(request.url ?? "") ?? [];
    if (name === undefined || request.method !== "POST")
      return answer(404, { error: "Use POST /<agent>/run" });
    const given = Object.entries(request.headers);
    const headers = given.flatMap(([key, value]) =>
      typeof value === "string" ? [[key, value] as const] : [],
    );
    if (!(await isAuthorised(new Request("http://bell/", { headers: Object.fromEntries(headers) }), secret)))
      return answer(401, { error: "Send Authorization: Bearer <PAWL_RUN_SECRET>" });
    if (ring(name)) return answer(202, { accepted: true });
    return answer(404, { error: `There is no ${name}` });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  server.unref();
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/{agent}/run`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
