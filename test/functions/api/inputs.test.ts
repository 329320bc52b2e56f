import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { buildFunction } from "../../../infra/build/build.ts";
import { TARGETS, type Target } from "../../../infra/build/targets.ts";
import type { LocalNats } from "../../../infra/local/nats-server.ts";
import { createToken } from "../../../shared/web/tokens.ts";
import { ALL } from "../../support/http/api.ts";
import { deploy, varsOf } from "../../support/servers/platforms.ts";
import { testNats, wired, world } from "../../support/servers/stores.ts";
import { SHARED, tempAgents } from "../../support/temp-agents.ts";

interface Row {
  /** The schema, as its author writes it. */
  readonly schema: string;
  /** What comes before it in the file. */
  readonly before?: string;
  readonly good: readonly object[];
  /** Each with the path that the refusal names. */
  readonly bad: readonly (readonly [object, string])[];
}

/** Each has one field that JSON Schema alone can't decide; whatever else is wrong must be found all the same. */
const rows: Readonly<Record<string, Row>> = {
  regex: {
    schema: "z.object({ code: z.string().regex(/^[a-z]+$/i) })",
    good: [{ code: "AbC" }, { code: "a", more: 1 }],
    bad: [
      [{}, "code"],
      [{ code: "7" }, "code"],
    ],
  },
  default: {
    schema: "z.object({ who: z.string(), n: z.number().default(3) })",
    good: [{ who: "ann" }, { who: "ann", n: 1 }],
    bad: [
      [{}, "who"],
      [{ who: "ann", n: "x" }, "n"],
    ],
  },
  url: {
    schema: "z.object({ urls: z.array(z.url()).min(1).max(50) })",
    good: [{ urls: ["https://a.test/"] }],
    bad: [
      [{}, "urls"],
      [{ urls: [] }, "urls"],
      [{ urls: ["https://a.test/", "b"] }, "urls.1"],
    ],
  },
  refine: {
    schema:
      'z.object({ from: z.number(), to: z.number() }).refine(({ from, to }) => from < to, { error: "late", path: ["from"] })',
    good: [{ from: 1, to: 2 }],
    bad: [
      [{ to: 2 }, "from"],
      [{ from: 2, to: 1 }, "from"],
    ],
  },
  patient: {
    schema:
      'z.object({ n: z.number() }).refine(async ({ n }) => { await Promise.resolve(); return n > 0; }, { path: ["n"] })',
    good: [{ n: 1 }],
    bad: [[{ n: 0 }, "n"]],
  },
  transform: {
    schema:
      'z.object({ list: z.string().transform((text) => text.split(",").map(Number)).pipe(z.array(z.int())) })',
    good: [{ list: "1,2" }],
    bad: [
      [{}, "list"],
      [{ list: [1, 2] }, "list"],
      [{ list: "1,x" }, "list.1"],
    ],
  },
  coerce: {
    schema: "z.object({ who: z.string(), n: z.coerce.number().max(5) })",
    good: [
      { who: "ann", n: "4" },
      { who: "ann", n: true },
    ],
    bad: [
      [{ n: 1 }, "who"],
      [{ who: "ann", n: "9" }, "n"],
    ],
  },
  // Of a vendor that nobody knows, and that can't say itself as JSON Schema.
  vendor: {
    schema:
      '{ "~standard": { version: 1, vendor: "own", validate: (value) => value.ok ? { value } : { issues: [{ message: "not ok", path: [{ key: "ok" }] }] } } }',
    good: [{ ok: true }],
    bad: [[{}, "ok"]],
  },
};

const agents = tempAgents();

function write(name: string, { schema, before = "" }: Pick<Row, "schema" | "before">): void {
  const source = `import * as z from "zod";\nimport { defineAgent } from "${SHARED}/agent.ts";\n${before}
export default defineAgent({ input: ${schema}, run: () => 1 });\n`;
  writeFileSync(join(agents, `${name}.ts`), source);
}

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
  for (const [name, row] of Object.entries(rows)) write(name, row);
  const { schema } = rows.regex as Row;
  // The build's own process has it, and so may the agent's function; the API has not.
  process.env.TEST_OWN_TOKEN = "there";
  const before = `if (!globalThis.process?.env?.TEST_OWN_TOKEN) throw new Error("TEST_OWN_TOKEN is not set");`;
  write("throwing", { schema, before });
  write("silent", { schema: `${schema}.refine(() => new Promise(() => {}))` });
  write("endless", {
    schema,
    before: "if (!globalThis.process?.env?.TEST_OWN_TOKEN) await new Promise(() => {});",
  });
  write("builtin", {
    schema,
    before: `import { isSea } from "node:sea";\nexport const used = isSea;`,
  });
  // Node loads it, and a bundle has no place for it.
  writeFileSync(join(agents, "empty.wasm"), Buffer.from([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0]));
  write("unbundled", { schema, before: `import * as wasm from "./empty.wasm";\nexport const used = wasm;` });
});
afterAll(() => {
  delete process.env.TEST_OWN_TOKEN;
  return nats.stop();
});

async function stage(target: Target) {
  await using started = new AsyncDisposableStack();
  const w = world(nats, "nats-kv");
  const deps = started.use(await wired(w.config));
  const token = await createToken(deps.store, { owner: "ann", scopes: ALL, createdAt: 0 });
  const built = await buildFunction("api", target, agents, join(agents, "dist"));
  const api = started.use(await deploy(built, varsOf(w, target)));
  const ask = async (path: string, body?: object) => {
    const method = body ? "POST" : "GET";
    const headers = { authorization: `Bearer ${token}` };
    const answer = await fetch(`${api.url}${path}`, {
      method,
      headers,
      ...(body && { body: JSON.stringify(body) }),
    });
    return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
  };
  const all = started.move();
  return {
    built,
    ask,
    log: api.log,
    // For later, so that no queue is needed.
    submit: (agent: string, input: object) => ask("/v1/tasks", { agent, input, at: "2099-01-01T00:00:00Z" }),
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

test.each(TARGETS)(
  "the agent's own schema decides at the API on %s, whatever its fields are",
  async (target) => {
    await using s = await stage(target);
    for (const [name, { good, bad }] of Object.entries(rows)) {
      for (const [input, path] of bad) {
        const { status, body } = await s.submit(name, input);
        expect([status, body.code], `${name} ${JSON.stringify(input)}`).toEqual([422, "input_invalid"]);
        expect(body.detail, name).toMatch(new RegExp(`^The agent does not accept this input\\. ${path}: `));
      }
      for (const input of good) {
        const { status, body } = await s.submit(name, input);
        expect(status, `${name} ${JSON.stringify(input)}`).toBe(201);
        // Kept as it was sent: what the schema makes of it is made anew for each run.
        expect((await s.ask(`/v1/tasks/${body.id}`)).body.input).toEqual(input);
      }
    }
    const { body } = await s.ask("/v1/agents");
    const shown = (body.agents as { name: string; inputSchema?: object }[]).find(
      ({ name }) => name === "url",
    );
    expect(shown?.inputSchema).toMatchObject({
      type: "object",
      properties: { urls: { items: { format: "uri" } } },
      required: ["urls"],
    });
    expect(s.log()).not.toContain("input.unasked");
  },
);

test.each(TARGETS)(
  "where the schema can't be asked on %s, what is surely wrong is refused, and the log says why once",
  async (target) => {
    await using s = await stage(target);
    const isWorker = target === "cloudflare";
    expect(s.built.uncarried.map(({ agent }) => agent)).toEqual(["unbundled"]);
    const unasked = {
      throwing: /TEST_OWN_TOKEN is not set/,
      silent: /its schema does not answer/,
      endless: /its module does not finish loading/,
      unbundled: undefined,
      ...(isWorker && { builtin: /no node:sea in this Worker/ }),
    };
    for (const [name, reason] of Object.entries(unasked)) {
      for (const input of [{}, { code: 7 }]) {
        const { status, body } = await s.submit(name, input);
        expect([status, body.code], name).toEqual([422, "input_invalid"]);
        expect(body.detail, name).toMatch(
          /^The (agent does not accept this input|input is not valid)\. code: /,
        );
      }
      // Whether the text is the right one, only the schema could say: the run does.
      expect((await s.submit(name, { code: "ok" })).status, name).toBe(201);
      const lines = s
        .log()
        .split("\n")
        .filter((line) => line.includes("input.unasked") && line.includes(`"${name}"`));
      expect(lines, name).toHaveLength(reason ? 1 : 0);
      if (reason) expect(lines[0]).toMatch(reason);
    }
    if (!isWorker) expect((await s.submit("builtin", { code: "7" })).status).toBe(422);
    // The others are none the worse for it.
    expect((await s.submit("regex", { code: "7" })).status).toBe(422);
  },
);
