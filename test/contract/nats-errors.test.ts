import { JetStreamApiError } from "@nats-io/jetstream";
import { expect, test } from "vitest";
import { busError, isRefusal } from "../../shared/adapters/nats-errors.ts";

const api = (err_code: number, code: number) => new JetStreamApiError({ err_code, code, description: "x" });

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
