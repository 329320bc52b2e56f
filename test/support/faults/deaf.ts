import { createServer, type Server } from "node:net";

/** Accepts connections and never answers. */
export async function deafServer(): Promise<{ host: string } & AsyncDisposable> {
  const server: Server = createServer(() => {});
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const port = typeof address === "object" && address ? address.port : 0;
  return {
    host: `127.0.0.1:${port}`,
    [Symbol.asyncDispose]: async () => {
      server.close();
    },
  };
}
