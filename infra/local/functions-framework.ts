import { createRequire } from "node:module";
import { type ChoosePort, freePort, onFreePorts } from "./ports.ts";
import { type ServerProcess, startServer, untilReady } from "./process.ts";

export interface LocalGcpFunction extends AsyncDisposable {
  readonly url: string;
  readonly process: ServerProcess;
}

/** The framework says nothing in production; that it listens is said for it. */
const LISTENS = "pawl: the framework listens";
const SAYS_SO = `import { subscribe } from "node:diagnostics_channel";
subscribe("tracing:net.server.listen:asyncEnd", () => console.log(${JSON.stringify(LISTENS)}));`;

/** A bundle for Google Cloud Run functions, in Google's own framework, as a process. */
export function startGcpFunction(
  folder: string,
  vars: Readonly<Record<string, string>>,
  hear?: (line: string) => void,
  choosePort: ChoosePort = freePort,
): Promise<LocalGcpFunction> {
  return onFreePorts(async () => {
    const port = await choosePort();
    const server = await frameworkOn(port, folder, vars, hear);
    return {
      url: `http://127.0.0.1:${port}`,
      process: server,
      [Symbol.asyncDispose]: () => server.stop(),
    };
  });
}

async function frameworkOn(
  port: number,
  folder: string,
  vars: Readonly<Record<string, string>>,
  hear?: (line: string) => void,
): Promise<ServerProcess> {
  const main = createRequire(import.meta.url).resolve("@google-cloud/functions-framework");
  const args = [
    `--import=data:text/javascript,${encodeURIComponent(SAYS_SO)}`,
    main.replace(/index\.js$/, "main.js"),
    "--target=pawl",
    `--source=${folder}`,
    `--port=${port}`,
  ];
  // Nothing of our own environment but what a process needs: on the platform it is not there either.
  const env = { PATH: process.env.PATH, HOME: process.env.HOME, ...vars };
  const server = await startServer(process.execPath, args, env, (line) => {
    if (line !== LISTENS) hear?.(line);
  });
  await untilReady(server, "functions-framework", async () => server.output().includes(LISTENS), 30_000);
  return server;
}
