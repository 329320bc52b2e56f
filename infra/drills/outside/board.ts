import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

export interface Post {
  /** When it arrived, and was done. */
  readonly at: number;
  readonly path: string;
  readonly text: string;
}

/** Somebody asked whether there was a post. */
export interface Look {
  readonly at: number;
  readonly path: string;
  readonly found: boolean;
}

/** A receiver of effects that remembers every post, also a second one under the same path, and every look. */
export interface Board extends AsyncDisposable {
  readonly url: string;
  readonly posts: readonly Post[];
  readonly looks: readonly Look[];
  /** While on, a post is done when it arrives, and not answered. */
  hold(on: boolean): void;
}

export async function startBoard(): Promise<Board> {
  const posts: Post[] = [];
  const looks: Look[] = [];
  const there = new Set<string>();
  let held: PromiseWithResolvers<void> | undefined;
  const server = createServer(async (request, response) => {
    const path = (request.url ?? "").slice(1);
    if (request.method === "POST") {
      const text = await read(request).catch(() => undefined);
      // Whoever died in the middle of a post has posted nothing.
      if (text === undefined) return;
      posts.push({ at: Date.now(), path, text });
      there.add(path);
      // Time to be killed between the post and its receipt.
      await sleep(Math.random() * 80);
      await held?.promise;
    } else {
      const found = there.has(path);
      looks.push({ at: Date.now(), path, found });
      if (!found) response.statusCode = 404;
    }
    response.end("ok");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    posts,
    looks,
    hold: (on) => {
      held?.resolve();
      held = on ? Promise.withResolvers() : undefined;
    },
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function read(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}
