import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface Served extends AsyncDisposable {
  readonly url: string;
}

/** Web requests and responses behind a real HTTP server on a port of its own, as the platforms' adapters do it. */
export async function serveHttp(answer: (request: Request) => Promise<Response>): Promise<Served> {
  const server = createServer(async (incoming, outgoing) => {
    try {
      await send(await answer(await webRequest(incoming)), outgoing);
    } catch (error) {
      outgoing.destroy(error as Error);
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function webRequest(incoming: IncomingMessage): Promise<Request> {
  const { method = "GET", url = "/" } = incoming;
  const headers = new Headers();
  for (const [name, value] of Object.entries(incoming.headers))
    for (const one of [value ?? []].flat()) headers.append(name, one);
  const parts: Buffer[] = [];
  for await (const part of incoming) parts.push(part as Buffer);
  const hasBody = method !== "GET" && method !== "HEAD";
  const at = new URL(url, `http://${incoming.headers.host}`);
  return new Request(at, { method, headers, ...(hasBody && { body: new Uint8Array(Buffer.concat(parts)) }) });
}

async function send(answer: Response, outgoing: ServerResponse): Promise<void> {
  outgoing.statusCode = answer.status;
  answer.headers.forEach((value, name) => void outgoing.appendHeader(name, value));
  const reader = answer.body?.getReader();
  outgoing.on("close", () => void reader?.cancel().catch(() => {}));
  for (let part = await reader?.read(); part && !part.done; part = await reader?.read())
    outgoing.write(part.value);
  outgoing.end();
}
