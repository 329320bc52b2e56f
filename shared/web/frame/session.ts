import { deleteCookie, getCookie, setCookie } from "hono/cookie";
import { sha256 } from "../../values/json.ts";
import type { Request } from "../context.ts";

/** Sessions last a working day, in seconds. The token itself lives until it is revoked; it is looked up at every request. */
const MAX_AGE = 12 * 60 * 60;
const LOCAL = new Set(["localhost", "127.0.0.1", "[::1]"]);

/**
 * What the cookie holds is the token: it is its holder's secret already, and so there is no second kind of secret to
 * keep, and none to forget when the token is revoked. No script can read it.
 */
export function startSession(c: Request, token: string): void {
  setCookie(c, "pawl", token, { ...options(c), maxAge: MAX_AGE });
}

export function endSession(c: Request): void {
  deleteCookie(c, "pawl", options(c));
}

export function sessionToken(c: Request): string | undefined {
  return getCookie(c, "pawl", isLocal(c) ? undefined : "host");
}

/** A `__Host-` cookie can't be set by a neighbour domain. It must be Secure, which a local server can't offer. */
function options(c: Request) {
  const local = isLocal(c);
  return {
    path: "/",
    httpOnly: true,
    sameSite: "Strict",
    secure: !local,
    ...(!local && { prefix: "host" as const }),
  } as const;
}

/** By the host's name alone: behind a platform's proxy the scheme of the URL is not the browser's. */
function isLocal(c: Request): boolean {
  return LOCAL.has(urlOf(c)?.hostname ?? "");
}

/** A caller's Host can be anything: then this is none. */
function urlOf({ req: { url } }: Request): URL | undefined {
  return URL.canParse(url) ? new URL(url) : undefined;
}

/** The path and the query that were asked for. */
export function addressOf(c: Request): string | undefined {
  const url = urlOf(c);
  return url && `${url.pathname}${url.search}`;
}

/** A page of the dashboard's own, whatever an address says: "/ui" where it is none. */
export function pageAt(address: string | null | undefined): string {
  // Browsers take a backslash for a slash, and drop tabs and line ends.
  if (!address || !/^\/ui(?:[/?]|$)/.test(address) || /[\\\p{Cc}]/u.test(address)) return "/ui";
  const { origin, pathname, search } = new URL(address, "http://pawl.invalid");
  if (origin !== "http://pawl.invalid" || !/^\/ui(?:\/|$)/.test(pathname)) return "/ui";
  return /^\/ui\/(?:login|logout|live)\b|\/live$/.test(pathname) ? "/ui" : `${pathname}${search}`;
}

/** What every form of a session carries. Only those who can read its pages know it, and it says nothing of the token. */
export function formKey(token: string): string {
  return sha256(`pawl form key\n${token}`);
}

export async function isFormKey(given: string | null, token: string): Promise<boolean> {
  return isSame(given ?? "", formKey(token));
}

/** Compares in constant time, so that the time taken tells nothing of the key. */
function isSame(a: string, b: string): boolean {
  let difference = a.length ^ b.length;
  for (let i = 0; i < b.length; i++) difference |= (a.charCodeAt(i) || 0) ^ b.charCodeAt(i);
  return difference === 0;
}

/**
 * Whether a form was sent by a page of ours. Browsers that hide the referrer send "null" as the form's origin: then
 * Sec-Fetch-Site, which no page can make up, has to say it.
 */
export function isOwnForm(c: Request): boolean {
  const site = c.req.header("sec-fetch-site");
  const origin = c.req.header("origin");
  if (site !== undefined && site !== "same-origin") return false;
  if (origin === undefined || origin === "null") return site === "same-origin";
  return URL.canParse(origin) && new URL(origin).host === urlOf(c)?.host;
}
