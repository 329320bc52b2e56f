import { Fatal } from "./errors/errors.ts";

const MOST_REDIRECTS = 5;
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/**
 * `fetch` for an address that somebody else chose: it goes to public addresses only, and throws `Fatal` before it asks any other
 * one. Refused are other schemes than http and https, names and passwords in the address, `localhost` and names of private
 * networks, addresses of one's own machine, network or cloud (127.0.0.1, 10.0.0.0/8, 169.254.169.254, ::1, fc00::/7 and the
 * like), and names that lead to one of those; each redirect is checked before it is followed.
 *
 * What it can't tell: a name may lead elsewhere a moment after it was looked up (DNS rebinding), and a Worker can look up no
 * names at all. Where that matters, let traffic out through a proxy or firewall that refuses private addresses.
 */
export async function publicFetch(address: string | URL, init: RequestInit = {}): Promise<Response> {
  let url = new URL(address);
  let request = init;
  for (let redirects = 0; ; redirects++) {
    await refusePrivate(url);
    const response = await fetch(String(url), { ...request, redirect: "manual" });
    const next = REDIRECTS.has(response.status) && response.headers.get("location");
    if (!next || init.redirect === "manual") return response;
    await response.body?.cancel();
    if (init.redirect === "error" || redirects === MOST_REDIRECTS)
      throw new Fatal(
        `${shown(url)} redirects${redirects > 0 ? ` ${redirects + 1} times` : ""}: not followed`,
      );
    if (!URL.canParse(next, url.href)) throw new Fatal(`${shown(url)} redirects to what is no address`);
    const to = new URL(next, url);
    request = redirected(request, response.status, to.origin !== url.origin);
    url = to;
  }
}

/** As browsers do it: a POST becomes a GET, except where the status says otherwise, and another host learns no secrets. */
function redirected(init: RequestInit, status: number, isElsewhere: boolean): RequestInit {
  const method = (init.method ?? "GET").toUpperCase();
  const isKept = status === 307 || status === 308 || method === "GET" || method === "HEAD";
  const { body, method: _, ...rest } = init;
  const headers = new Headers(init.headers);
  if (isElsewhere)
    for (const secret of ["authorization", "cookie", "proxy-authorization"]) headers.delete(secret);
  if (!isKept) for (const about of ["content-type", "content-length"]) headers.delete(about);
  return { ...rest, headers, ...(isKept ? { method, ...(body != null && { body }) } : { method: "GET" }) };
}

/** Throws `Fatal` where an address is none of the public internet's, as far as one can tell. */
export async function refusePrivate(url: URL): Promise<void> {
  if (url.protocol !== "https:" && url.protocol !== "http:")
    throw new Fatal(`${shown(url)} is no address of the web: it should begin with https://`);
  if (url.username || url.password) throw new Fatal(`${shown(url)} has a name or a password in it`);
  const host = url.hostname.replace(/^\[|\]$/g, "").replace(/\.$/, "");
  if (/(^|\.)(localhost|local|internal|intranet|lan|home\.arpa)$/i.test(host) || isPrivateAddress(host))
    throw new Fatal(`${shown(url)} is private: only public addresses are asked`);
  const leads = (await addressesOf(host)).find(isPrivateAddress);
  if (leads !== undefined) throw new Fatal(`${shown(url)} leads to ${leads}, which is private`);
}

/** Without what may be secret: its name and password, and its query. */
const shown = ({ protocol, host, pathname }: URL): string => `${protocol}//${host}${pathname}`.slice(0, 200);

type Lookup = (host: string, options: { all: true }) => Promise<{ address: string }[]>;

/** Where a name leads, on platforms that say so. One that leads nowhere is left to the request, which fails. */
async function addressesOf(host: string): Promise<readonly string[]> {
  if (isAddress(host)) return [];
  const { process, navigator } = globalThis as {
    process?: { getBuiltinModule?(name: string): unknown };
    navigator?: { userAgent?: string };
  };
  // A Worker's stand-in for this module asks a resolver elsewhere, whose answer says nothing of where its fetch goes.
  if (!process?.getBuiltinModule || navigator?.userAgent === "Cloudflare-Workers") return [];
  const dns = process.getBuiltinModule("node:dns/promises") as { lookup: Lookup } | undefined;
  try {
    return ((await dns?.lookup(host, { all: true })) ?? []).map(({ address }) => address);
  } catch {
    return [];
  }
}

const isAddress = (host: string) => host.includes(":") || /^[\d.]+$/.test(host);

/** Of IPv4: from, and how many bits say so. */
const PRIVATE: readonly (readonly [string, number])[] = [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.0.2.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["198.51.100.0", 24],
  ["203.0.113.0", 24],
  ["224.0.0.0", 3],
];

/** Whether an IP address is of one's own machine or network, of a cloud's metadata, or of nobody. A name is none. */
export function isPrivateAddress(host: string): boolean {
  if (/^\d+\.\d+\.\d+\.\d+$/.test(host)) return isPrivateV4(numberOf(host));
  if (!host.includes(":")) return false;
  const words = wordsOf(host);
  if (!words) return true;
  const [a = 0, b = 0, c = 0] = words;
  const last = ((words[6] ?? 0) * 65_536 + (words[7] ?? 0)) >>> 0;
  const isZero = (from: number, to: number) => words.slice(from, to).every((word) => word === 0);
  // An IPv4 address in another form: mapped, compatible (with :: and ::1 among them), translated, 6to4.
  if (isZero(0, 5) && (words[5] === 0xffff || words[5] === 0)) return isPrivateV4(last);
  if (a === 0x64 && b === 0xff9b) return !isZero(2, 6) || isPrivateV4(last);
  if (a === 0x2002) return isPrivateV4((b * 65_536 + c) >>> 0);
  // All that is given out to be public lies in 2000::/3; Teredo and examples lie there too.
  const isGlobal = a >> 13 === 1;
  return !isGlobal || (a === 0x2001 && (b === 0 || b === 0xdb8)) || (a === 0x3fff && b >> 12 === 0);
}

const isPrivateV4 = (address: number) =>
  PRIVATE.some(([from, bits]) => address >>> (32 - bits) === numberOf(from) >>> (32 - bits));

const numberOf = (address: string) =>
  address.split(".").reduce((sum, part) => sum * 256 + Number(part), 0) >>> 0;

/** The eight words of an IPv6 address; undefined where it is none. */
function wordsOf(host: string): number[] | undefined {
  const plain = host
    .replace(/%.*$/, "")
    .replace(/(\d+\.\d+\.\d+\.\d+)$/, (v4) =>
      [numberOf(v4) >>> 16, numberOf(v4) & 0xffff].map((word) => word.toString(16)).join(":"),
    );
  const [head = "", tail, ...more] = plain.split("::");
  const read = (part: string) =>
    part === "" ? [] : part.split(":").map((word) => Number.parseInt(word, 16));
  const [before, after] = [read(head), read(tail ?? "")];
  const missing = 8 - before.length - after.length;
  if (more.length > 0 || missing < 0 || (tail === undefined && missing > 0)) return undefined;
  const words = [...before, ...Array<number>(missing).fill(0), ...after];
  return words.every((word) => word >= 0 && word <= 0xffff) ? words : undefined;
}
