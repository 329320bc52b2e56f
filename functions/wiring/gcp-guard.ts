import { type IncomingMessage, Server, type ServerResponse } from "node:http";
import { problem } from "../../shared/web/problem.ts";

/** More than any request of ours: the largest input, and room for the rest. */
const MOST_BYTES = 2 * 1024 * 1024;

/** How much of a refused body is let go by: as much as Cloud Run lets through. And for how long, at most. */
const MOST_DISCARDED = 32 * 1024 * 1024;
const LONGEST_DISCARD = 30_000;

const types = new WeakMap<IncomingMessage, string>();

const bodies = new WeakMap<IncomingMessage, Buffer>();

/** The body as it came. */
export function bodyOf(request: IncomingMessage): Buffer | undefined {
  return bodies.get(request);
}

/** What the caller said of its body. */
export function contentTypeOf(request: IncomingMessage): string | undefined {
  return types.get(request);
}

/**
 * The framework reads, inflates and parses a body of up to a gigabyte before anything of ours is asked: a stranger could
 * fill the instance's memory, and end the task that it runs. So what is too much is refused before the framework sees
 * it, and the rest is read here.
 */
export function guardServer(): void {
  const emit = Server.prototype.emit as (this: Server, event: string | symbol, ...args: unknown[]) => boolean;
  Server.prototype.emit = function (this: Server, event: string | symbol, ...args: unknown[]): boolean {
    if (event !== "request") return emit.call(this, event, ...args);
    const [request, response] = args as [IncomingMessage, ServerResponse];
    const refusal = refused(request);
    if (refusal) {
      void send(refusal, request, response);
      return true;
    }
    types.set(request, request.headers["content-type"] ?? "");
    if (request.headers["content-type"]) request.headers["content-type"] = "application/octet-stream";
    if (!Number(request.headers["content-length"] ?? 0)) return emit.call(this, event, ...args);
    // Whoever hangs up in the middle of a body is no failure of ours: the framework would log it as one, with a stack.
    void whole(request).then((body) => {
      if (!body) return;
      bodies.set(request, body);
      emit.call(this, event, ...args);
    });
    return true;
  } as typeof Server.prototype.emit;
}

function refused({ headers }: IncomingMessage): Response | undefined {
  const encoding = headers["content-encoding"] ?? "identity";
  if (encoding !== "identity")
    return problem(
      "input_invalid",
      `Send the body as it is: content-encoding ${encoding} is not taken`,
      {},
      415,
    );
  if (headers["transfer-encoding"])
    return problem("input_invalid", "Send the body with its content-length", {}, 411);
  if (Number(headers["content-length"] ?? 0) > MOST_BYTES)
    return problem("input_too_large", `The body is over ${MOST_BYTES} bytes`);
  return undefined;
}

/**
 * Most callers read no answer before they have sent their whole body: a connection that is closed meanwhile is a broken
 * pipe to them, and no 413. So the answer goes out at once, and the connection ends after the body.
 */
async function send(answer: Response, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const body = Buffer.from(await answer.arrayBuffer());
  const headers = {
    ...Object.fromEntries(answer.headers),
    connection: "close",
    "content-length": body.length,
  };
  response.writeHead(answer.status, headers).write(body);
  await discard(request);
  response.end();
}

/** The body, whole; undefined where its sender hung up before that. */
function whole(request: IncomingMessage): Promise<Buffer | undefined> {
  return new Promise((resolve) => {
    const parts: Buffer[] = [];
    request.on("data", (part: Buffer) => void parts.push(part));
    request.once("end", () => resolve(Buffer.concat(parts)));
    for (const over of ["error", "close"]) request.once(over, () => resolve(undefined));
  });
}

/** Reads the body and keeps none of it, up to its end or to the limits. */
function discard(request: IncomingMessage): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, LONGEST_DISCARD);
    let bytes = 0;
    request.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > MOST_DISCARDED) resolve();
    });
    for (const over of ["end", "error", "close"]) request.once(over, () => resolve());
    request.once("close", () => clearTimeout(timer));
  });
}
