import { type Connection, invalid } from "./connection.ts";
import { foreign, Problem, problemOf } from "./problem.ts";

/** What every call takes. */
export interface CallOptions {
  /** Ends the call with its reason. What was sent may have been done. */
  readonly signal?: AbortSignal | undefined;
}

export interface Asked extends CallOptions {
  readonly path: string;
  readonly query?: Readonly<Record<string, string | number | undefined>>;
  /** Makes it a POST. */
  readonly body?: object;
  readonly headers?: Readonly<Record<string, string>>;
  /** The same request again does nothing more: it may be sent again where nobody knows what became of it. */
  readonly isRepeatable: boolean;
}

/** An error's body is read so far. */
const PROBLEM_READ = 65_536;
/** Refused before anything was done. */
const TOO_MANY = 429;

/** Takes what an answer says. `clean`: leaves the token out of a text, should somebody have sent it back. */
type Read<T> = (response: Response, clean: (text: string) => string) => Promise<T>;

/** One answer, in JSON. */
export function askJson<T>(connection: Connection, asked: Asked): Promise<T> {
  return ask(connection, asked, async (response, clean) => {
    const type = response.headers.get("content-type");
    if (!type?.includes("json"))
      throw foreign(response.status, type, clean(await beginningOf(response, PROBLEM_READ)));
    return (await response.json()) as T;
  });
}

/** Asks until there is an answer, as long as patience lasts and as far as the request may be repeated. */
export async function ask<T>(connection: Connection, asked: Asked, read: Read<T>): Promise<T> {
  const { now, sleep, pause, patience } = connection;
  const body = asked.body && jsonOf(asked.body);
  const giveUpAt = now() + patience;
  for (let tries = 1; ; tries++) {
    try {
      return await once(connection, asked, body, read);
    } catch (error) {
      if (!(error instanceof Problem) || !isForLater(error, asked)) throw error;
      const wait = Math.max(pause(tries), (error.retryAfter ?? 0) * 1_000);
      if (now() + wait >= giveUpAt) throw error;
      await sleep(wait, asked.signal);
    }
  }
}

/** Too many requests are refused undone; of everything else nobody knows, so only what is repeatable is sent again. */
function isForLater({ code, status = 0 }: Problem, { isRepeatable }: Asked): boolean {
  return status === TOO_MANY || (isRepeatable && (code === "no_answer" || status > 501));
}

async function once<T>(
  connection: Connection,
  { path, query = {}, headers, signal, isRepeatable }: Asked,
  body: string | undefined,
  read: Read<T>,
): Promise<T> {
  signal?.throwIfAborted();
  const token = await connection.token();
  const clean = (text: string) => text.replaceAll(token, "…");
  const said = Object.entries(query).filter(([, value]) => value !== undefined);
  const search = said.length > 0 ? `?${new URLSearchParams(said as [string, string][])}` : "";
  const tooLong = new AbortController();
  const timer = setTimeout(
    () => tooLong.abort(new Error(`none within ${connection.timeout} ms`)),
    connection.timeout,
  );
  try {
    const response = await connection.fetch(connection.base + path + search, {
      method: body ? "POST" : "GET",
      // Followed, a redirect would make a GET of a POST, or take the token elsewhere.
      redirect: "manual",
      headers: {
        authorization: `Bearer ${token}`,
        ...(body && { "content-type": "application/json" }),
        ...headers,
      },
      ...(body && { body }),
      signal: signal ? AbortSignal.any([signal, tooLong.signal]) : tooLong.signal,
    });
    if (response.ok) return await read(response, clean);
    if (response.type === "opaqueredirect" || response.status < 400) throw redirected(response, clean);
    const text = await beginningOf(response, PROBLEM_READ);
    throw problemOf(response, clean(text), Date.now());
  } catch (error) {
    if (error instanceof Problem) throw error;
    signal?.throwIfAborted();
    const reason = tooLong.signal.aborted ? tooLong.signal.reason : error;
    throw noAnswer(connection.base, clean(reasonOf(reason)), isRepeatable);
  } finally {
    clearTimeout(timer);
  }
}

/** Made once, so that each try sends the same. */
function jsonOf(body: object): string {
  try {
    return JSON.stringify(body);
  } catch (error) {
    throw invalid(`what is sent has to be JSON: ${(error as Error).message}`);
  }
}

function redirected({ status, headers }: Response, clean: (text: string) => string): Problem {
  const to = headers.get("location");
  const where = to === null ? "elsewhere" : JSON.stringify(clean(to).slice(0, 200));
  return new Problem("foreign_answer", `It redirects to ${where}: give url the address of the API itself`, {
    status,
  });
}

/** Node says it in the cause, others in the message. */
function reasonOf(error: unknown): string {
  const { message = "", cause } = Object(error) as { message?: string; cause?: { code?: string } };
  return String(cause?.code ?? message);
}

function noAnswer(base: string, reason: string, isRepeatable: boolean): Problem {
  const isPage = "document" in globalThis;
  const where = isPage ? ". In a page also where the API does not allow its origin: PAWL_CORS_ORIGIN" : "";
  const undone = isRepeatable
    ? ""
    : ". Nobody knows whether it was done: look at the task before you ask again";
  return new Problem("no_answer", `No answer from ${base} (${reason.slice(0, 200)})${where}${undone}`);
}

/** The rest is not waited for: an endless page ends here. */
async function beginningOf({ body }: Response, most: number): Promise<string> {
  const reader = body?.getReader();
  if (!reader) return "";
  const decoder = new TextDecoder();
  let text = "";
  try {
    while (text.length < most) {
      const { done, value } = await reader.read();
      if (done) break;
      text += decoder.decode(value, { stream: true });
    }
  } finally {
    void reader.cancel().catch(() => {});
  }
  return text.slice(0, most);
}
