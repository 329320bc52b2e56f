import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { examine } from "../../infra/doctor/examine.ts";
import { contractsOf, partsIn } from "../../infra/doctor/read.ts";

/** Set-ups that were published by people who run agents on JetStream, and what is wrong with each. */
const faults = {
  // A fleet of agents: a backoff that begins sooner than a heartbeat comes, and a stream that throws work away.
  fleet: [
    "error backoff-replaces-ack-wait",
    "error heartbeat-too-slow",
    "error push-fields-on-pull",
    "error push-fields-on-pull",
    "error max-age-outlives-record",
    "error discard-old-loses",
    "error subject-limit-evicts",
    "error max-age-loses",
    "warning max-deliver-under-backoff",
  ],
  // A control plane: the record lives as long as one ack_wait, which every deployment may raise.
  "control-plane": ["error redelivery-outlives-record", "warning record-does-not-follow"],
  // Its message ids: a resubmit is the same operation, also inside the window; later ones are the record's to stop.
  "message-ids": ["error redrive-swallowed", "warning window-shorter-than-retries"],
  // Its dispatcher: gives up before the redelivery comes, and takes back what may be stored.
  dispatch: [
    "error window-shorter-than-retries",
    "error lost-before-redelivered",
    "error rolled-back-unknown",
    "warning attempts-counted-twice",
  ],
  // A consumer's contract with an ack_wait by measured times, which its own backoff replaces.
  "ack-contract": [
    "error backoff-replaces-ack-wait",
    "error heartbeat-too-slow",
    "warning nak-delay-blocks",
    "warning nak-delay-under-backoff",
    "warning advisories-uncaptured",
  ],
} as const;

test.each(Object.entries(faults))("%s has exactly these faults", (name, expected) => {
  const file = join(import.meta.dirname, "published", `${name}.json`);
  const [contract] = contractsOf(partsIn([{ file, text: readFileSync(file, "utf8") }]));
  const found = examine(contract as NonNullable<typeof contract>);
  expect(found.map(({ severity, rule }) => `${severity} ${rule}`)).toEqual(expected);
});

test("of the fleet's every finding has the value that is and the one to set", () => {
  const file = join(import.meta.dirname, "published/fleet.json");
  const found = contractsOf(partsIn([{ file, text: readFileSync(file, "utf8") }])).flatMap(examine);
  expect(found.slice(0, 2).map(({ is, set }) => [is, set])).toEqual([
    ["backoff [30s, 2m, 5m] replaces ack_wait 5m: a delivery times out after 30s", "backoff: leave it out"],
    [
      "the heartbeat is every 2m, and a delivery times out after 30s (backoff, which replaces ack_wait)",
      "heartbeat: 7s; or ack_wait: 8m, without backoff",
    ],
  ]);
});
