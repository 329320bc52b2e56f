import { afterEach, expect, test, vi } from "vitest";
import { startBell } from "../../../infra/local/dev/bell.ts";
import { ringer } from "../../../infra/local/dev/ringer.ts";

afterEach(() => void vi.useRealTimers());

test("the bell rings for who knows the secret, answers at once, and knows who is there", async () => {
  const rung: string[] = [];
  await using bell = await startBell("the secret of this dev", (name) => {
    if (name !== "hello") return false;
    rung.push(name);
    return true;
  });
  const call = async (name: string, secret: string, method = "POST") => {
    const headers = { authorization: `Bearer ${secret}` };
    return (await fetch(bell.url.replace("{agent}", name), { method, headers })).status;
  };
  expect(await call("hello", "the secret of this dev")).toBe(202);
  expect(await call("hello", "a guess")).toBe(401);
  expect(await call("nobody", "the secret of this dev")).toBe(404);
  expect(await call("hello", "the secret of this dev", "GET")).toBe(404);
  expect(rung).toEqual(["hello"]);
});

test("who has just started is woken for what waits, and when the ack_wait of what was cut off is over", () => {
  vi.useFakeTimers();
  const rung: string[] = [];
  const ring = async (name: string) => void rung.push(name);
  const rings = ringer(ring);
  for (const name of ["hello", "dispatch", "api", "reconcile"]) rings.started(name, 6_000);
  expect(rung).toEqual(["hello", "dispatch"]);
  vi.advanceTimersByTime(6_000);
  expect(rung).toHaveLength(2);
  vi.advanceTimersByTime(1_000);
  expect(rung).toEqual(["hello", "dispatch", "hello", "dispatch"]);
  rings.started("late", 6_000);
  rings[Symbol.dispose]();
  vi.advanceTimersByTime(10_000);
  rings.ring("late");
  expect(rung.filter((name) => name === "late")).toEqual(["late"]);
});
