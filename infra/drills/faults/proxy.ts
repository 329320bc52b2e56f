import { connect, createServer, type Socket } from "node:net";

export interface CuttingProxy extends AsyncDisposable {
  readonly url: string;
  readonly host: string;
  /** Lets requests through and drops every byte of the answers. */
  swallowReplies(on: boolean): void;
  /** Holds both directions back, as a network that went away without a word; what was held flows when it is back. */
  stall(on: boolean): void;
  /** Changes what a NATS server says of itself in its greeting, from now on: those that are connected have heard it. */
  greet(change: ((info: string) => string) | undefined): void;
  /** Resets all connections, and refuses new ones while on. */
  cut(on: boolean): void;
}

/** A TCP proxy in front of a real server, with faults to switch on. */
export async function cuttingProxy(target: string): Promise<CuttingProxy> {
  const { hostname, port } = new URL(target.includes("://") ? target : `tcp://${target}`);
  const pairs = new Set<[Socket, Socket]>();
  let swallowing = false;
  let stalled = false;
  let refusing = false;
  let greeting: ((info: string) => string) | undefined;
  const heard = (chunk: Buffer) => {
    const text = chunk.toString("latin1");
    return greeting && text.includes("INFO {") ? Buffer.from(greeting(text), "latin1") : chunk;
  };
  const server = createServer((client) => {
    if (refusing) return void client.resetAndDestroy();
    const upstream = connect({ host: hostname, port: Number(port) });
    const pair: [Socket, Socket] = [client, upstream];
    pairs.add(pair);
    const end = () => {
      pairs.delete(pair);
      client.destroy();
      upstream.destroy();
    };
    for (const socket of pair) {
      socket.setNoDelay(true);
      socket.on("error", end);
      socket.on("close", end);
    }
    client.on("data", (chunk) => upstream.write(chunk));
    upstream.on("data", (chunk) => {
      if (!swallowing) client.write(heard(chunk));
    });
    if (stalled) for (const socket of pair) socket.pause();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const own = typeof address === "object" && address ? address.port : 0;
  const reset = () => {
    for (const [client, upstream] of pairs) {
      client.resetAndDestroy();
      upstream.destroy();
    }
  };
  return {
    url: `nats://127.0.0.1:${own}`,
    host: `127.0.0.1:${own}`,
    swallowReplies: (on) => {
      swallowing = on;
      // A stream with a hole in it is no protocol any more: the client has to connect anew.
      if (!on) reset();
    },
    stall: (on) => {
      stalled = on;
      for (const socket of [...pairs].flat()) on ? socket.pause() : socket.resume();
    },
    greet: (change) => {
      greeting = change;
    },
    cut: (on) => {
      refusing = on;
      if (on) reset();
    },
    [Symbol.asyncDispose]: async () => {
      reset();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
