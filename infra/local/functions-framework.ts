import { createRequire } from "node:module";
import { freePort, type ServerProcess, startServer, untilReady } from "./process.ts";

export interface LocalGcpFunction extends AsyncDisposable {
  readonly url: string;
  readonly process: ServerProcess;
}

/** A bundle for Google Cloud Run functions, in Google's own framework, as a process. */
export async function startGcpFunction(
  folder: string,
  vars: Readonly<Record<string, string>>,
  hear?: (line: string) => void,
): Promise<LocalGcpFunction> {
  const main = createRequire(import.meta.url).resolve("@google-cloud/functions-framework");
  const port = await freePort();
  const args = [
    main.replace(/index\.js$/, "main.js"),
    "--target=pawl",
    `--source=${folder}`,
    `--port=${port}`,
  ];
  // Nothing of our own environment but what a process needs: on the platform it is not there either.
  const env = { PATH: process.env.PATH, HOME: process.env.HOME, ...vars };
  const server = await startServer(process.execPath, args, env, hear);
  const url = `http://127.0.0.1:${port}`;
  const answers = async () => (await fetch(url, { method: "HEAD" })).status > 0;
  await untilReady(server, "functions-framework", answers, 30_000);
  return { url, process: server, [Symbol.asyncDispose]: () => server.stop() };
}
