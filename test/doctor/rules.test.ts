import { describe, expect, test } from "vitest";
import { examine } from "../../infra/doctor/examine.ts";
import { contractsOf, partsIn } from "../../infra/doctor/read.ts";
import type { Finding } from "../../infra/doctor/rule.ts";
import { contractRules } from "../../infra/doctor/rules.ts";
import { type Case, triggers } from "./triggers.ts";

const found = (given: Case): Finding[] =>
  contractsOf(partsIn([{ file: "f.json", text: JSON.stringify(given) }])).flatMap(examine);
const one = (rule: string, given: Case): Finding => {
  const [finding] = found(given).filter((other) => other.rule === rule);
  return finding as Finding;
};

describe("each rule finds what it is for, names its value and what to set, and spares what just holds", () => {
  test.each(Object.entries(triggers))("%s", (rule, [finds, spares]) => {
    const finding = one(rule, finds);
    expect(finding).toMatchObject({
      rule,
      field: expect.stringMatching(/^(stream|consumer|application|server)/),
    });
    expect(finding.is).toMatch(/\S/);
    expect(finding.set).toMatch(/\S/);
    expect(one(rule, spares)).toBeUndefined();
  });

  test("and its words are sentences", () => {
    for (const { checks, prevents, mend } of Object.values(contractRules)) {
      expect(prevents).toMatch(/^[A-Z].*\.$/);
      expect(mend).toMatch(/^[A-Z].*\.$/);
      expect(checks).not.toMatch(/\.$/);
    }
  });
});

describe("what decides is known, or a rule only warns", () => {
  test("as many deliveries as times in a backoff: refused before 2.10, taken since, and unlimited ones too", () => {
    const consumer = { max_deliver: 3, backoff: ["30s", "1m", "2m"] };
    const of = (server?: string) => one("max-deliver-under-backoff", { consumer, ...(server && { server }) });
    expect(of("2.9.10")).toMatchObject({ severity: "error", refused: 10116, set: "max_deliver: 4" });
    expect(of()).toMatchObject({ severity: "warning" });
    expect(of()).not.toHaveProperty("refused");
    const less = { consumer: { ...consumer, max_deliver: 2 }, server: "2.15.1" };
    expect(one("max-deliver-under-backoff", less)).toMatchObject({ severity: "error", refused: 10116 });
    const unlimited = { consumer: { ...consumer, max_deliver: -1 } };
    expect(one("max-deliver-under-backoff", { ...unlimited, server: "2.9.10" })?.refused).toBe(10116);
    expect(one("max-deliver-under-backoff", { ...unlimited, server: "2.10.0" })).toBeUndefined();
  });

  test("a backoff that is longer than ack_wait is late, not dangerous; one that a server shows may have replaced it", () => {
    const longer = one("backoff-replaces-ack-wait", { consumer: { ack_wait: "30s", backoff: ["1m", "5m"] } });
    expect(longer).toMatchObject({ severity: "warning", set: "ack_wait: 1m, or no backoff" });
    const shown = one("backoff-replaces-ack-wait", { consumer: { ack_wait: "30s", backoff: ["30s", "2m"] } });
    expect(shown).toMatchObject({ severity: "warning", set: "heartbeat: below 10s; or leave backoff out" });
  });

  test("a heartbeat is held against the shortest wait, which a backoff may have at its end", () => {
    const consumer = { ack_wait: "1m", backoff: ["1m", "20s"] };
    const { is, set } = one("heartbeat-too-slow", { consumer, application: { heartbeat: "10s" } });
    expect(is).toBe(
      "the heartbeat is every 10s, and a delivery times out after 20s (backoff, which replaces ack_wait)",
    );
    expect(set).toBe("heartbeat: 5s; or ack_wait: 40s, without backoff");
    // Times that no delivery reaches don't count.
    const few = { ...consumer, max_deliver: 1 };
    expect(one("heartbeat-too-slow", { consumer: few, application: { heartbeat: "10s" } })).toBeUndefined();
  });

  test("repeats after the window are stopped by a record that outlives them", () => {
    const stream = { duplicate_window: "2m" };
    const of = (record_ttl: string) =>
      one("window-shorter-than-retries", { stream, application: { publish_retry: "1h", record_ttl } });
    expect(of("90d")).toMatchObject({ severity: "warning" });
    expect(of("1h")).toMatchObject({ severity: "error", set: "duplicate_window: more than 1h" });
  });

  test("a record can't outlive redeliveries without an end", () => {
    const { is, set } = one("redelivery-outlives-record", {
      consumer: { ack_wait: "30s" },
      application: { record_ttl: "90d" },
    });
    expect(is).toBe("the record lives for 90d, and a message is delivered without an end, over any time");
    expect(set).toBe("record_ttl: forever; or a max_deliver");
  });

  test("a stream of records is none of work until somebody consumes it, and then only warned of", () => {
    const stream = { retention: "limits", max_age: "7d", max_msgs: 10 };
    expect(found({ stream })).toEqual([]);
    const rules = found({ stream, consumer: { ack_policy: "explicit", max_deliver: 5 } });
    expect(rules.map(({ rule, severity }) => [rule, severity])).toEqual([
      ["discard-old-loses", "warning"],
      ["max-age-loses", "warning"],
    ]);
  });

  test("a name that is nearly right is told", () => {
    const { is, set } = one("unknown-field", { consumer: { ack_wait: "30s", maxDeliver: 5 } });
    expect(`${is}: ${set}`).toBe('"maxDeliver" is no field of a consumer: max_deliver, if that was meant');
  });
});
