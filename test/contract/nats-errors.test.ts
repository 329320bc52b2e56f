import { JetStreamApiError } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/nats-core";
import { expect, test } from "vitest";
import { busError, isRefusal } from "../../shared/adapters/jetstream/nats-errors.ts";
import { type Link, natsLink } from "../../shared/adapters/jetstream/nats-link.ts";

const api = (err_code: number, code: number) => new JetStreamApiError({ err_code, code, description: "x" });

/** The client's own, which it does not export. */
const notEnabled = (message: string, cause?: Error) =>
  Object.assign(new Error(message, { cause }), { name: "JetStreamNotEnabled" });
/** As much of a connection as a link looks at. */
const connection = (says: { jetstream?: boolean }) =>
  ({
    info: { version: "2.10.0", ...says },
    async *status() {},
    closed: () => new Promise(() => {}),
  }) as unknown as NatsConnection;

test("what passes is told apart from what never will", () => {
  // No meta leader, insufficient resources, a store that failed: a cluster that is not well, yet.
  for (const passing of [api(10008, 503), api(10023, 503), api(10009, 503)]) {
    expect(isRefusal(passing)).toBe(false);
    expect(busError(passing, "x").code).toBe("bus_unavailable");
  }
  for (const final of [api(10025, 400), api(10065, 400), api(10039, 503), api(10076, 503)]) {
    expect(isRefusal(final)).toBe(true);
    expect(busError(final, "x").code).toBe("bus_refused");
  }
});

test("JetStream that seems off passes on a server that has it, or had it; else it is taken at its word", async () => {
  const offs = [
    notEnabled("jetstream is not enabled"),
    notEnabled("not enabled for account", api(10039, 503)),
    api(10039, 503),
    api(10076, 503),
  ];
  const seen = async (link: Link, error: Error) => {
    const thrown = await link(() => Promise.reject(error)).catch((one: unknown) => one);
    return busError(thrown, "x").code;
  };
  for (const off of offs) {
    expect(await seen(natsLink(connection({ jetstream: true }), 100), off)).toBe("bus_unavailable");
    expect(await seen(natsLink(connection({}), 100), off)).toBe("bus_refused");
    const proven = natsLink(connection({}), 100);
    await proven(async () => "an answer");
    expect(await seen(proven, off)).toBe("bus_unavailable");
  }
});

test("a server that is full says so in plain words", () => {
  for (const full of [api(10023, 503), api(10047, 500), new Error("write: no space left on device")])
    expect(busError(full, "x").message).toMatch(/storage is full/);
});
