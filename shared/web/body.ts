import type { MiddlewareHandler } from "hono";
import { bodyLimit } from "hono/body-limit";
import { isPawlError, NotNow, PawlError } from "../errors/errors.ts";
import { type Json, parseJson } from "../values/json.ts";
import type { Env, Request } from "./context.ts";
import { costOfBytes } from "./rate-limit.ts";

/** How long a body is by its own header; undefined where it does not say. */
export function saidLength(c: Request): number | undefined {
  const said = c.req.header("content-length");
  return said !== undefined && /^\d{1,15}$/.test(said) ? Number(said) : undefined;
}

/** Takes what a body of so many bytes costs, before any of it is parsed. */
export function chargeBytes(c: Request, bytes: number): void {
  const seconds = c.var.charge(costOfBytes(bytes));
  if (seconds > 0) throw tooMany(seconds);
}

export function tooMany(seconds: number): NotNow {
  return new NotNow("too_many_requests", `Too much was asked for. Try again in ${seconds} s`, seconds);
}

/** Refuses a body of more bytes, read or unread. */
export function bodyOfAtMost(
  maxSize: number,
  onError: (c: Request) => Response | Promise<Response>,
): MiddlewareHandler<Env> {
  const limited = bodyLimit({ maxSize, onError: (c) => onError(c as Request) });
  return (c, next) => arriving(() => limited(c, next));
}

/** A request's body as text. */
export function bodyText(request: { text(): Promise<string> }): Promise<string> {
  return arriving(() => request.text());
}

/** A request's body as JSON; an empty body is {}. One that did not say its length is paid for when it is known. */
export async function readBody(c: Request): Promise<Json> {
  const text = await bodyText(c.req.raw);
  if (saidLength(c) === undefined) chargeBytes(c, text.length);
  return text === "" ? {} : parseJson(text, "The body");
}

/** Where its sender hangs up before a body is whole, reading it throws whatever the platform likes: no failure of ours. */
async function arriving<T>(read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    if (isPawlError(error)) throw error;
    throw new PawlError("request_cut_off", "The body did not come whole: its sender hung up", {
      cause: error,
    });
  }
}
