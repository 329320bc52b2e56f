import { backoff } from "../values/backoff.ts";
import { parseDuration } from "../values/duration.ts";
import { Problem } from "./problem.ts";

/** Where Pawl's API is, and who asks. */
export interface ClientOptions {
  /** The API's address: "https://pawl-api.example.workers.dev". */
  readonly url: string;
  /** A token of `pawl token create`, or a function that gives one, asked before each request: for tokens that change. */
  readonly token: string | (() => string | Promise<string>);
  /** How long what may be repeated is tried again while there is no answer, or one that says "later". "2m" by default: the API asks for a minute where its servers are away. */
  readonly patience?: string;
  /** How long one try may take until its answer is there. "30s" by default. */
  readonly timeout?: string;
  /** Allows http:// to another machine: whoever is in between reads the token then. false by default. */
  readonly allowHttp?: boolean;
  /** Instead of the global `fetch`. */
  readonly fetch?: (url: string, init: RequestInit) => Promise<Response>;
}

/** What requests are made with. Its clock is the machine's, and never set back; in tests it is theirs. */
export interface Connection {
  /** Without a slash at its end. */
  readonly base: string;
  readonly patience: number;
  readonly timeout: number;
  token(): Promise<string>;
  fetch(url: string, init: RequestInit): Promise<Response>;
  now(): number;
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** The pause after so many tries that failed. */
  pause(tries: number): number;
}

const FIRST_PAUSE = 250;
const LONGEST_PAUSE = 10_000;

/** Checked once, so that no request finds out. */
export function connect(options: ClientOptions): Connection {
  const { url, token, patience, timeout, allowHttp = false } = options;
  const base = addressOf(url, allowHttp);
  if (typeof token === "string") checkToken(token);
  else if (typeof token !== "function")
    throw invalid("token is neither a text nor a function that gives one");
  const given = options.fetch;
  return {
    base,
    patience: durationOf("patience", patience, 120_000),
    timeout: durationOf("timeout", timeout, 30_000),
    token: async () => checkToken(typeof token === "string" ? token : await token()),
    // The browser's own refuses to be called as a method of something else.
    fetch: (address, init) => (given ? given(address, init) : fetch(address, init)),
    now: () => performance.now(),
    sleep,
    pause: (tries) => backoff(tries, Math.random(), FIRST_PAUSE, LONGEST_PAUSE),
  };
}

export function invalid(what: string): Problem {
  return new Problem("client_invalid", what);
}

export function durationOf(name: string, text: string | undefined, byDefault: number): number {
  const ms = text === undefined ? byDefault : parseDuration(text);
  if (ms === undefined)
    throw invalid(`${name} is ${JSON.stringify(text)}; it should be a duration such as "30s"`);
  return ms;
}

/** Never with the token in it: what is thrown ends in logs. */
function checkToken(token: string): string {
  if (typeof token === "string" && /^[\x21-\x7e]+$/.test(token)) return token;
  throw invalid("the token is empty, or has characters that no token has: spaces or line ends, say");
}

const LOCAL = /^(localhost|.+\.localhost|127(\.\d+){3}|\[::1\])$/;

function addressOf(url: string, allowHttp: boolean): string {
  const wrong = (why: string) =>
    invalid(`url ${why}; it should be the API's address, such as "https://pawl-api.example.workers.dev"`);
  let address: URL;
  try {
    address = new URL(url);
  } catch {
    throw wrong(`is ${JSON.stringify(url)?.slice(0, 200)}`);
  }
  const { protocol, hostname, username, password, search, hash, origin, pathname } = address;
  if (username || password) throw wrong("has a name or password in it");
  if (search || hash) throw wrong("has a query or fragment");
  if (protocol !== "https:" && protocol !== "http:") throw wrong(`begins with ${protocol}`);
  if (protocol === "http:" && !allowHttp && !LOCAL.test(hostname))
    throw invalid(
      `url is http://${hostname}: everybody in between could read the token. Use https://, or say allowHttp: true`,
    );
  return origin + pathname.replace(/\/+$/, "");
}

function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, ms);
    if (signal?.aborted) stop();
    else signal?.addEventListener("abort", stop, { once: true });
  });
}
