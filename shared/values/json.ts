import { createHash } from "node:crypto";
import { type ErrorCode, PawlError } from "../errors/errors.ts";

/** Plain data, as JSON has it: no dates, maps, functions or undefined. */
export type Json = string | number | boolean | null | Json[] | JsonObject;
/** An object of plain data. */
export interface JsonObject {
  /** Any field. */
  [key: string]: Json;
}

/** Deeper than any hand-made input, and far from where recursive code (JSON.stringify among it) overflows. */
export const MAX_DEPTH = 64;

/** Depth of nesting, read from the text itself so that a hostile depth never reaches a recursive function. */
function depthOf(text: string): number {
  let depth = 0;
  let deepest = 0;
  let inString = false;
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i);
    if (inString) {
      if (c === 0x5c) i++;
      else if (c === 0x22) inString = false;
    } else if (c === 0x22) inString = true;
    else if (c === 0x7b || c === 0x5b) deepest = Math.max(deepest, ++depth);
    else if (c === 0x7d || c === 0x5d) depth--;
  }
  return deepest;
}

/** Parses JSON that a stranger wrote: bounded in depth, and with no `__proto__` key anywhere. */
export function parseJson(text: string, what: string, code: ErrorCode = "input_invalid"): Json {
  const depth = depthOf(text);
  if (depth > MAX_DEPTH) {
    throw new PawlError(code, `${what} is nested ${depth} levels deep; ${MAX_DEPTH} is the limit`);
  }
  let value: Json;
  try {
    // To ask about each value takes longer than to parse them: only where a number is long enough to matter.
    value = JSON.parse(text, /\d{16}/.test(text) ? exactly(what, code) : undefined) as Json;
  } catch (error) {
    if (error instanceof PawlError) throw error;
    throw new PawlError(code, `${what} is not JSON: ${(error as Error).message}`);
  }
  if (/__proto__|\\u/.test(text)) refuseProto(value, what, code);
  return value;
}

/** A copy of plain data, so that who has one changes no other. */
export function copyOf<T extends Json>(value: T): T {
  return JSON.parse(JSON.stringify(value)) as T;
}

/** The same rules for a value in memory. Returns a plain copy; what JSON would drop or change in silence is refused. */
export function plainJson(value: unknown, what: string, code: ErrorCode): Json {
  refuseOdd(value, what, code, 0);
  return parseJson(JSON.stringify(value), what, code);
}

function refuseOdd(value: unknown, path: string, code: ErrorCode, depth: number): void {
  if (depth > MAX_DEPTH) {
    throw new PawlError(
      code,
      `${path.slice(0, 200)}… is nested more than ${MAX_DEPTH} levels deep, or in a cycle`,
    );
  }
  if (value === null || typeof value === "string" || typeof value === "boolean") return;
  if (typeof value === "number" && Number.isFinite(value)) return;
  const isPlain =
    typeof value === "object" && [Object.prototype, null].includes(Object.getPrototypeOf(value));
  if (!Array.isArray(value) && !isPlain)
    throw new PawlError(code, `${path} is ${kindOf(value)}, which JSON can't express`);
  for (const [key, child] of Object.entries(value as object)) {
    // A property that is undefined is one that is not there; a hole in an array would become null.
    if (child !== undefined || Array.isArray(value)) refuseOdd(child, `${path}.${key}`, code, depth + 1);
  }
}

function kindOf(value: unknown): string {
  if (typeof value === "object") return `a ${(value as object).constructor?.name ?? "special object"}`;
  return typeof value === "number" ? String(value) : `a ${typeof value}`;
}

/** Refuses integers that would come out as other ones: an id in digits belongs in a string. */
function exactly(what: string, code: ErrorCode) {
  return (key: string, value: unknown, context?: { source?: string }) => {
    const source = context?.source ?? "";
    if (typeof value === "number" && /^-?\d+$/.test(source) && !Number.isSafeInteger(value)) {
      throw new PawlError(
        code,
        `${what}: ${key || "the value"} is ${source.slice(0, 40)}, too large a number to keep exactly. Send it as a string`,
      );
    }
    return value;
  };
}

function refuseProto(value: Json, path: string, code: ErrorCode): void {
  if (value === null || typeof value !== "object") return;
  for (const [key, child] of Object.entries(value)) {
    if (key === "__proto__")
      throw new PawlError(code, `${path} has a key "__proto__", which is not accepted`);
    refuseProto(child, `${path}.${key}`, code);
  }
}

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The same text for the same value, whatever the order of its keys. */
export function canonicalJson(value: Json): string {
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
  const entries = Object.keys(value)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonicalJson(value[key] as Json)}`);
  return `{${entries.join(",")}}`;
}

export function byteLength(text: string): number {
  return new TextEncoder().encode(text).length;
}

/** At once: WebCrypto's digest is a trip to another thread, which takes longer than the digest. */
export function sha256(data: string | Uint8Array): string {
  return createHash("sha256").update(data).digest("hex");
}

export function hashInput(input: JsonObject): string {
  return sha256(canonicalJson(input));
}
