import { expect, test } from "vitest";
import * as z from "zod";
import { ownSchema } from "../../../functions/wiring/own-schema.ts";
import { type Agent, defineAgent } from "../../../shared/agent.ts";
import { acceptedInput } from "../../../shared/input.ts";
import type { LogFields } from "../../../shared/ports/log.ts";

const run = () => 1;
const strict = defineAgent({ input: z.object({ n: z.number() }), run });

function asked(load: () => Promise<{ default: Agent }>, patience = 20) {
  const logged: LogFields[] = [];
  const accepts = ownSchema(
    "tested",
    load,
    (_level, _event, fields = {}) => void logged.push(fields),
    patience,
  );
  return { accepts, logged };
}

test("the module is loaded once, and its schema asked each time", async () => {
  let loads = 0;
  const { accepts, logged } = asked(async () => {
    loads++;
    return { default: strict };
  }, 60_000);
  expect(await accepts({ n: 1 })).toEqual({ value: { n: 1 } });
  expect(await accepts({})).toMatchObject({ problem: { code: "input_invalid" } });
  expect([loads, logged]).toEqual([1, []]);
});

test("a module that throws is not asked again, and the log says it once", async () => {
  let loads = 0;
  const { accepts, logged } = asked(async () => {
    loads++;
    throw new Error("JIRA_TOKEN is not set");
  }, 60_000);
  for (let i = 0; i < 3; i++) expect(await accepts({})).toBeUndefined();
  expect(loads).toBe(1);
  expect(logged).toEqual([{ agent: "tested", reason: "its module threw: JIRA_TOKEN is not set" }]);
});

test("who does not answer is not waited for, and is asked again", async () => {
  const late = Promise.withResolvers<{ default: Agent }>();
  const { accepts, logged } = asked(() => late.promise);
  expect([await accepts({}), await accepts({})]).toEqual([undefined, undefined]);
  expect(logged).toEqual([{ agent: "tested", reason: "its module does not finish loading" }]);
  late.resolve({ default: defineAgent({ input: z.object({}).refine(() => new Promise(() => {})), run }) });
  // By now it has loaded: what hangs is its schema.
  for (let i = 0; i < 20 && logged.length < 2; i++) expect(await accepts({})).toBeUndefined();
  expect(logged[1]).toEqual({ agent: "tested", reason: "its schema does not answer" });
});

test("a schema's refusal is bounded, however much there is to say, and one that throws refuses", async () => {
  const input = z.strictObject({ list: z.array(z.number()) });
  const long = "k".repeat(10_000);
  const many = Array.from({ length: 1_000 }, () => "x");
  const refused = await acceptedInput({ input }, { list: many, [long]: 1 });
  if (!("problem" in refused)) throw new Error("it was accepted");
  expect(refused.problem.message).toMatch(/list\.0: .*; list\.4: .*; and 996 more$/);
  expect(refused.problem.message.length).toBeLessThan(3_000);
  const own = {
    "~standard": {
      version: 1,
      vendor: "own",
      validate: () => ({ issues: [{ message: long, path: [long] }] }),
    },
  } as const;
  const odd = await acceptedInput({ input: own }, {});
  expect("problem" in odd && odd.problem.message.length).toBeLessThan(700);
  const throwing = z.object({ json: z.string().transform((text) => JSON.parse(text)) });
  expect(await acceptedInput({ input: throwing }, { json: "{" })).toMatchObject({
    problem: { code: "input_invalid", message: expect.stringMatching(/^The agent's schema threw: /) },
  });
});

test("what an agent is given is what its schema makes of the input, which stays as it was", async () => {
  const input = { n: "4" };
  const accepted = await acceptedInput(
    { input: z.object({ n: z.coerce.number(), m: z.number().default(3) }) },
    input,
  );
  expect(accepted).toEqual({ value: { n: 4, m: 3 } });
  expect(input).toEqual({ n: "4" });
});
