import { randomInt } from "node:crypto";
import { createSocket, type Socket } from "node:dgram";
import { createServer } from "node:net";
import { messageOf } from "../../shared/errors/errors.ts";

/**
 * Below the ports that systems give to whoever asks for any, outgoing connections included: one of those could take a
 * server's port while it restarts. Above the ones that fetch refuses.
 */
const [FIRST, LAST] = [11_000, 32_767];

/** Chooses a port of the loopback address. */
export type ChoosePort = () => Promise<number>;

const claims = new Set<Socket>();

/** A port that nothing listens on, and that is given to nobody else for as long as this process lives. */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < 1_000; tries++) {
    const port = randomInt(FIRST, LAST + 1);
    const claim = await claimed(port);
    if (!claim) continue;
    if (await isFree(port)) {
      claims.add(claim);
      return port;
    }
    claim.close();
  }
  throw new Error(`No port from ${FIRST} to ${LAST} is free on 127.0.0.1: end some of the servers there`);
}

/**
 * The UDP port of the same number says that a process of ours means to use the TCP port: the server itself binds that one
 * only later, and leaves it while it restarts. The system takes the claim back when we end, in whatever way.
 */
function claimed(port: number): Promise<Socket | undefined> {
  return new Promise((resolve) => {
    const socket = createSocket("udp4");
    socket.once("error", () => {
      socket.close();
      resolve(undefined);
    });
    socket.bind({ port, address: "127.0.0.1", exclusive: true }, () => {
      socket.unref();
      resolve(socket);
    });
  });
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });
}

/** Starts a server whose ports `start` chooses: anew, a few times, when a stranger took one before the server had it. */
export async function onFreePorts<T>(start: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await start();
    } catch (error) {
      if (tries === 5 || !isPortTaken(error)) throw error;
    }
  }
}

/** Starts a server whose ports are known to others: who took one meanwhile is waited for. */
export async function onSamePorts<T>(start: () => Promise<T>, ms: number): Promise<T> {
  const until = Date.now() + ms;
  for (;;) {
    try {
      return await start();
    } catch (error) {
      if (Date.now() > until || !isPortTaken(error)) throw error;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
}

/** In the words of Go, Java, Node and workerd alike. */
function isPortTaken(error: unknown): boolean {
  return /address already in use|EADDRINUSE/i.test(messageOf(error));
}
