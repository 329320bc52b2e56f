import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { get, type IncomingMessage } from "node:http";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { text as wholeText } from "node:stream/consumers";
import { required } from "../missing.ts";
import { ROOT } from "../project.ts";
import { readWrangler } from "../wrangler.ts";
import { type ChoosePort, freePort, onFreePorts } from "./ports.ts";
import { type ServerProcess, startServer, untilReady } from "./process.ts";

/** The program itself: the package's command is a script that starts it, and signals would reach only that. */
const { default: BINARY, compatibilityDate: NEWEST } = required("workerd") as {
  default: string;
  compatibilityDate: string;
};

/** For Pawl's own tests; an installed package has none. */
const OUR_WRANGLER = join(ROOT, "wrangler.toml");
const theirs = existsSync(OUR_WRANGLER) ? OUR_WRANGLER : undefined;

export interface LocalFunction {
  readonly name: string;
  /** Its bundle. */
  readonly file: string;
}

/** Functions in one workerd, from the bundles that would be deployed, with the flags that wrangler.toml names. */
export interface LocalWorkerd extends AsyncDisposable {
  readonly pid: number;
  /** Every function under its name: <front>/<function>/… */
  readonly front: string;
  readonly urls: Readonly<Record<string, string>>;
  /** Fires a function's cron, and resolves when that invocation is over. */
  cron(name: string): Promise<{ outcome: string }>;
  readonly exited: Promise<number | null>;
}

export interface LocalWorkerdOptions {
  readonly vars: Readonly<Record<string, string>>;
  /** Every line that it prints. */
  readonly hear?: (line: string) => void;
  readonly choosePort?: ChoosePort;
  /** Whose compatibility date and flags it has; those that Pawl needs when left out. */
  readonly wrangler?: string;
}

type Ports = ReadonlyMap<string, number>;

export async function startWorkerd(
  functions: readonly LocalFunction[],
  options: LocalWorkerdOptions,
): Promise<LocalWorkerd> {
  const folder = await mkdtemp(join(tmpdir(), "pawl-workerd-"));
  const tidy = () => rm(folder, { recursive: true, force: true });
  await writeFile(join(folder, "front.js"), FRONT_SOURCE);
  const { server, ports } = await onFreePorts(() => workerdIn(folder, functions, options)).catch(
    async (error: unknown) => {
      await tidy();
      throw error;
    },
  );
  const address = (name: string) => `http://127.0.0.1:${ports.get(name)}`;
  return {
    pid: server.pid,
    front: address(FRONT.name),
    urls: Object.fromEntries(functions.map(({ name }) => [name, address(name)])),
    cron: async (name) => JSON.parse(await ask(`${address(FRONT.name)}/${name}/cron`)) as { outcome: string },
    exited: server.exited,
    [Symbol.asyncDispose]: async () => {
      await server.stop();
      await tidy();
    },
  };
}

/** Not by fetch, which gives up after five minutes: an invocation may take fifteen, and ends with its caller. */
function ask(url: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const heard = (response: IncomingMessage) => wholeText(response).then(resolve, reject);
    get(url, { agent: false }, heard).on("error", reject);
  });
}

async function workerdIn(
  folder: string,
  functions: readonly LocalFunction[],
  { vars, hear, choosePort = freePort, wrangler = theirs }: LocalWorkerdOptions,
): Promise<{ server: ServerProcess; ports: Ports }> {
  const ports = new Map<string, number>();
  for (const { name } of [...functions, FRONT]) ports.set(name, await choosePort());
  const file = join(folder, "config.capnp");
  await writeFile(file, configOf(functions, vars, ports, folder, wrangler), { mode: 0o600 });
  const args = ["serve", "--experimental", "--control-fd=1", file];
  const server = await startServer(BINARY, args, process.env, (line) => {
    if (!line.startsWith(LISTENS)) hear?.(line);
  });
  // By its own word: who answers on its ports may be somebody else. It says so of all of them or of none.
  const listens = async () => server.output().includes(`${LISTENS}"${FRONT.name}"`);
  await untilReady(server, "workerd", listens, 60_000);
  return { server, ports };
}

/** What workerd tells of each of its sockets. */
const LISTENS = '{"event":"listen","socket":';

/** In front of them all: one address for every function, and cron triggers, which come from outside of workerd. */
const FRONT = { name: "pawl-front" };
const FRONT_SOURCE = `export default {
  async fetch(request, env) {
    const url = new URL(request.url);
    const [, name, ...path] = url.pathname.split("/");
    if (!env[name]) return new Response("no such function", { status: 404 });
    if (path[0] === "cron") return Response.json(await env[name].scheduled({ cron: "* * * * *" }));
    url.pathname = path.join("/");
    return env[name].fetch(new Request(url, request));
  },
};
`;

/** What a function's runtime is like, as its wrangler.toml says. */
export function compatibilityOf(wrangler = theirs) {
  if (wrangler === undefined) return { date: NEWEST, flags: NEEDED };
  const { compatibility_date: date, compatibility_flags: flags } = readWrangler(wrangler);
  return { date, flags };
}

/** Flags that Pawl's functions need: docs/deploy.md says why. */
const NEEDED = ["global_fetch_strictly_public", "nodejs_als"];

/** The escapes of JSON and of Cap'n Proto are the same but for one: there \u0001 is \x01. */
function asCapnp(json: string): string {
  return json.replace(/\\(?:u00([0-9a-f]{2})|.)/g, (whole, code?: string) => (code ? `\\x${code}` : whole));
}

function configOf(
  functions: readonly LocalFunction[],
  vars: Readonly<Record<string, string>>,
  ports: Ports,
  folder: string,
  wrangler: string | undefined,
): string {
  const { date, flags } = compatibilityOf(wrangler);
  const text = (value: string) => asCapnp(JSON.stringify(value));
  const worker = (file: string, bindings: readonly string[], more: readonly string[] = []) => `(
      modules = [(name = "index.js", esModule = embed ${text(relative(folder, file))})],
      compatibilityDate = ${text(date)}, compatibilityFlags = [${[...flags, ...more].map((flag) => text(flag)).join(", ")}],
      bindings = [${bindings.join(", ")}])`;
  const values = Object.entries(vars).map(([name, value]) => `(name = ${text(name)}, text = ${text(value)})`);
  const services = functions.map(({ name }) => `(name = ${text(name)}, service = ${text(name)})`);
  const workers = [
    ...functions.map(({ name, file }) => [name, worker(file, values)] as const),
    [FRONT.name, worker(join(folder, "front.js"), services, ["service_binding_extra_handlers"])] as const,
  ];
  return `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "internet", network = (allow = ["public", "private"], tlsOptions = (trustBrowserCas = true))),
    ${workers.map(([name, one]) => `(name = ${text(name)}, worker = ${one})`).join(",\n    ")}
  ],
  sockets = [
    ${[...ports].map(([name, port]) => `(name = ${text(name)}, address = "127.0.0.1:${port}", http = (), service = ${text(name)})`).join(",\n    ")}
  ]
);
`;
}
