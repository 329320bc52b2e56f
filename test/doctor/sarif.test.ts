import { describe, expect, test } from "vitest";
import * as z from "zod";
import { examine } from "../../infra/doctor/examine.ts";
import { contractsOf, partsIn } from "../../infra/doctor/read.ts";
import { type Finding, findings } from "../../infra/doctor/rule.ts";
import { allRules, liveRules } from "../../infra/doctor/rules.ts";
import { sarif } from "../../infra/doctor/sarif.ts";
import { liveTriggers, WELL } from "./live-triggers.ts";
import { triggers } from "./triggers.ts";

const text = z.string().min(1);
const level = z.enum(["none", "note", "warning", "error"]);
const message = z.strictObject({ text });
/** A URI or a reference to one: of RFC 3986's characters, and no scheme by accident. */
const uri = z.string().regex(/^(?:[\w\-.~/!$&'()*+,;=@]|%[0-9A-F]{2})+$/);

/**
 * SARIF 2.1.0, as far as the doctor says anything in it: each object with its required properties, and no property that the
 * schema of OASIS does not have (it forbids others everywhere). Code scanning wants more than that of `results`.
 */
const log = z.strictObject({
  $schema: z.url(),
  version: z.literal("2.1.0"),
  runs: z.tuple([
    z.strictObject({
      tool: z.strictObject({
        driver: z.strictObject({
          name: text,
          version: text,
          rules: z.array(
            z.strictObject({
              id: text,
              shortDescription: message,
              fullDescription: message,
              help: message,
              defaultConfiguration: z.strictObject({ level }),
            }),
          ),
        }),
      }),
      results: z.array(
        z.strictObject({
          ruleId: text,
          ruleIndex: z.int().nonnegative(),
          level,
          message,
          locations: z.tuple([
            z.strictObject({
              physicalLocation: z
                .strictObject({
                  artifactLocation: z.strictObject({ uri }),
                  region: z.strictObject({ startLine: z.int().positive() }),
                })
                .optional(),
              logicalLocations: z.tuple([z.strictObject({ fullyQualifiedName: text })]),
            }),
          ]),
        }),
      ),
    }),
  ]),
});

function checked(found: readonly Finding[], files: readonly { file: string; text: string }[]) {
  const { runs } = log.parse(JSON.parse(JSON.stringify(sarif(found, allRules, files, "1.0.0"))));
  const [{ tool, results }] = runs;
  const ids = tool.driver.rules.map(({ id }) => id);
  expect(new Set(ids).size).toBe(ids.length);
  for (const { ruleId, ruleIndex } of results) expect(ids[ruleIndex]).toBe(ruleId);
  expect(results.map(({ ruleId }) => ruleId)).toEqual(found.map(({ rule }) => rule));
  return results;
}

describe("what is said to code scanning is SARIF 2.1.0", () => {
  test("of every rule for anybody's queue, at the line of its file", () => {
    for (const file of ["/tmp/a queue.json", "standard input", "./größe#1?.json"])
      for (const [rule, [finds]] of Object.entries(triggers)) {
        const source = { file, text: JSON.stringify(finds, null, 1) };
        const found = contractsOf(partsIn([source])).flatMap(examine);
        expect(found.map((one) => one.rule)).toContain(rule);
        for (const { locations } of checked(found, [source]))
          expect(locations[0].physicalLocation).toBeDefined();
      }
  });

  test("of every rule for a deployment, which is in no file", () => {
    for (const [rule, [finds]] of Object.entries(liveTriggers)) {
      const found = findings(liveRules, { ...WELL, ...finds }, "this deployment");
      expect(found.map((one) => one.rule)).toContain(rule);
      for (const { locations } of checked(found, [])) expect(locations[0].physicalLocation).toBeUndefined();
    }
  });

  test("where nothing was found, and where a finding ends its own sentence", () => {
    expect(checked([], [])).toEqual([]);
    const one: Finding = {
      ...{ rule: "settings", severity: "error", subject: "it", field: "PAWL_REPLICAS" },
      ...{ is: "PAWL_REPLICAS=2: it can be 1, 3 or 5.", set: "another" },
    };
    expect(checked([one], [])[0]?.message.text).toBe("PAWL_REPLICAS=2: it can be 1, 3 or 5. Set another");
  });
});
