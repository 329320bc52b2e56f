import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { expect, test } from "vitest";

const root = resolve(import.meta.dirname, "..");
const layers = ["agents", "functions", "shared", "infra"];

function files(folder: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(".ts"))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)));
}

/** The files and packages that a file imports. */
function imports(file: string): string[] {
  const text = readFileSync(join(root, file), "utf8");
  const named = [...text.matchAll(/(?:from|import)\s*\(?\s*"([^"\n]+)"/g)].map((match) => match[1] as string);
  return named.map((name) => (name.startsWith(".") ? relative(root, resolve(root, file, "..", name)) : name));
}

const CORE = ["shared/errors", "shared/journal", "shared/settings", "shared/task", "shared/values"];
const OUTSIDE = [...CORE, "shared/ports"];
const ACTIVITY = [...OUTSIDE, "shared/retry"];
const BOOKS = [
  "shared/reconcile",
  "shared/reconcile/books",
  "shared/reconcile/figures",
  "shared/reconcile/findings",
];

/** What the files of a folder may import beside each other: folders, files, and packages. The rest is the wrong direction. */
const rules: Readonly<Record<string, readonly string[]>> = {
  agents: ["agents/lib/*", "shared/agent.ts", "*"],
  shared: [
    "shared/client",
    "shared/errors",
    "shared/journal",
    "shared/mcp",
    "shared/task",
    "shared/testing",
    "shared/values",
    "@standard-schema/spec",
  ],
  "shared/mcp": ["shared/errors", "shared/values", "shared/tool.ts"],
  "shared/values": ["shared/errors", "node:crypto"],
  "shared/errors": ["shared/values"],
  "shared/client": [
    "@standard-schema/spec",
    "shared/agent.ts",
    "shared/errors",
    "shared/values/backoff.ts",
    "shared/values/duration.ts",
  ],
  "shared/task": [...CORE, "croner"],
  "shared/journal": ACTIVITY,
  "shared/settings": CORE,
  "shared/ports": [...CORE, "shared/meter/counters.ts"],
  "shared/meter": ACTIVITY,
  "shared/retry": OUTSIDE,
  "shared/trace": ACTIVITY,
  "shared/seal": [...OUTSIDE, "node:crypto"],
  "shared/quota": [...ACTIVITY, "shared/meter"],
  "shared/pause": ACTIVITY,
  "shared/dispatch": [
    ...ACTIVITY,
    "shared/pause",
    "shared/quota",
    "shared/reconcile/books",
    "shared/reconcile/look/examine.ts",
  ],
  "shared/audit": [...ACTIVITY, "shared/dispatch", "shared/pause", "shared/quota"],
  "shared/handler": [
    ...ACTIVITY,
    "shared/dispatch",
    "shared/runner/invocation.ts",
    "shared/agent.ts",
    "shared/input.ts",
    "shared/llm.ts",
    "shared/mcp",
    "shared/tool.ts",
    "@anthropic-ai/sdk/lib/transform-json-schema",
    "@standard-schema/spec",
    "node:async_hooks",
  ],
  "shared/runner": [
    ...ACTIVITY,
    "shared/pause",
    "shared/dispatch",
    "shared/handler",
    "shared/seal",
    "shared/agent.ts",
    "shared/input.ts",
  ],
  "shared/reconcile": [...ACTIVITY, ...BOOKS, "shared/reconcile/look", "shared/dispatch", "shared/meter"],
  "shared/reconcile/books": [...OUTSIDE, ...BOOKS, "shared/seal"],
  "shared/reconcile/look": [...ACTIVITY, ...BOOKS, "shared/dispatch", "shared/pause", "shared/seal"],
  "shared/reconcile/findings": [...OUTSIDE, ...BOOKS, "shared/pause"],
  "shared/reconcile/figures": [...CORE, ...BOOKS, "shared/reconcile/look/examine.ts"],
  "shared/reconcile/page": [...CORE, ...BOOKS],
  "shared/adapters": [...OUTSIDE, "@anthropic-ai/sdk/*"],
  "shared/adapters/jetstream": [...OUTSIDE, "@nats-io/*"],
  "shared/adapters/kv": [...OUTSIDE, "shared/adapters", "shared/adapters/jetstream", "@nats-io/*"],
  "shared/adapters/firestore": [...OUTSIDE, "shared/adapters", "@google-cloud/firestore"],
  "shared/replay": [
    ...ACTIVITY,
    "shared/runner",
    "shared/testing/memory-store.ts",
    "shared/agent.ts",
    "node:fs/promises",
    "node:path",
  ],
  "shared/testing": [
    ...OUTSIDE,
    "shared/runner",
    "shared/replay",
    "shared/agent.ts",
    "node:path",
    "node:url",
  ],
  "shared/web": [
    ...OUTSIDE,
    "shared/input.ts",
    "shared/web/api/api.ts",
    "shared/web/pages/pages.ts",
    "hono",
    "hono/*",
    "zod",
  ],
  "shared/web/api": [
    ...OUTSIDE,
    "shared/pause",
    "shared/audit",
    "shared/dispatch",
    "shared/meter",
    "shared/quota",
    "shared/reconcile/books/reports.ts",
    "shared/reconcile/findings",
    "shared/web",
    "hono",
    "hono/*",
    "zod",
  ],
  "shared/web/frame": [...OUTSIDE, "shared/web", "hono", "hono/*"],
  "shared/web/lists": [
    ...OUTSIDE,
    "shared/pause",
    "shared/audit",
    "shared/dispatch",
    "shared/reconcile/page/chart.ts",
    "shared/web",
    "shared/web/api",
    "shared/web/frame",
    "hono",
    "hono/*",
  ],
  "shared/web/pages": [
    ...OUTSIDE,
    "shared/audit",
    "shared/dispatch",
    "shared/reconcile/books/reports.ts",
    "shared/reconcile/figures",
    "shared/web",
    "shared/web/api",
    "shared/web/frame",
    "shared/web/lists",
    "hono",
    "hono/*",
  ],
  functions: ["functions/wiring", "shared/*", "pawl:*"],
  "functions/wiring": ["functions", "shared/*", "pawl:*", "node:*", "*"],
  infra: ["infra/*", "functions/*", "shared/*", "node:*", "*"],
};

/** A folder's own rule, or that of the folder above it. */
const ruleOf = (folder: string): readonly string[] | undefined =>
  folder === "."
    ? undefined
    : (rules[folder] ?? (/^(infra|agents)\b/.test(folder) ? ruleOf(dirname(folder)) : undefined));

/** What belongs to an agent and is none. */
const BESIDE = /\.(test|model)\.ts$/;

const isPackage = (name: string) => !layers.some((layer) => name.startsWith(`${layer}/`));

function isAllowed(name: string, may: readonly string[]): boolean {
  return may.some((one) => {
    if (one === "*") return isPackage(name) && !name.includes(":");
    if (one.endsWith("*")) return name.startsWith(one.slice(0, -1));
    return name === one || (name.endsWith(".ts") && dirname(name) === one);
  });
}

test("every folder has a rule, and imports point one way only", () => {
  const all = layers.flatMap(files).filter((file) => !BESIDE.test(file));
  const wrong = all.flatMap((file) => {
    const folder = dirname(file);
    const may = ruleOf(folder);
    if (!may) return [`${folder} has no rule`];
    return imports(file)
      .filter((name) => dirname(name) !== folder && !isAllowed(name, may))
      .map((name) => `${file} imports ${name}`);
  });
  expect([...new Set(wrong)]).toEqual([]);
  expect(all.length).toBeGreaterThan(200);
});

test("an agent's test or model script imports the two doors and nothing else of Pawl's", () => {
  const wrong = files("agents")
    .filter((file) => BESIDE.test(file))
    .flatMap((file) =>
      imports(file).filter(
        (name) => !/^(shared\/(agent|testing)\.ts$|pawl\/testing$|agents\/|[^./@][\w-]*$)/.test(name),
      ),
    );
  expect(wrong).toEqual([]);
});

test("the client, which runs in browsers, has two small functions of Pawl's and else only its types", () => {
  const imported = files("shared/client").flatMap((file) =>
    [...readFileSync(join(root, file), "utf8").matchAll(/^import (?!type )[^;]*? from "\.\.([^"]+)";/gm)].map(
      ([, name]) => name,
    ),
  );
  expect([...new Set(imported)].toSorted()).toEqual(["/values/backoff.ts", "/values/duration.ts"]);
});

test("no file imports itself by way of others", () => {
  const known = new Map(layers.flatMap(files).map((file) => [file, imports(file)]));
  const done = new Set<string>();
  const cycles: string[] = [];
  const walk = (file: string, path: readonly string[]): void => {
    const at = path.indexOf(file);
    if (at >= 0) cycles.push([...path.slice(at), file].join(" -> "));
    if (at >= 0 || done.has(file)) return;
    for (const next of known.get(file) ?? []) walk(next, [...path, file]);
    done.add(file);
  };
  for (const file of known.keys()) walk(file, []);
  expect(cycles).toEqual([]);
});

const folders = () => [
  ...new Set(["functions", "shared", "infra"].flatMap(files).map((file) => dirname(file))),
];

test("every folder says in at most 15 lines what lives in it and where to begin, and names files that are there", () => {
  const wrong = folders()
    .filter((folder) => !/^infra\/(demo|drills)\/agents\b/.test(folder))
    .flatMap((folder) => {
      const path = join(root, folder, "README.md");
      if (!existsSync(path)) return [`${folder} has no README.md`];
      const text = readFileSync(path, "utf8");
      const gone = [...text.matchAll(/(?<![\w*./-])[\w/-]+\.ts\b/g)].filter(
        ([name]) => !existsSync(join(root, folder, name)),
      );
      const isLong = text.trimEnd().split("\n").length > 15;
      return [
        ...(isLong ? [`${path} is too long`] : []),
        ...gone.map(([name]) => `${folder} has no ${name}`),
      ];
    });
  expect(wrong).toEqual([]);
});

test("no folder has grown past 17 files, tests' folders past 20", () => {
  const count = (folder: string) =>
    readdirSync(join(root, folder)).filter((name) => name.endsWith(".ts")).length;
  const tests = [...new Set(files("test").map((file) => dirname(file)))];
  const large = [
    ...folders().filter((folder) => count(folder) > 17),
    ...tests.filter((folder) => count(folder) > 20),
  ];
  expect(large).toEqual([]);
});

test("the benches' folders and files are small too", () => {
  const large = ["bench", "bench/benches", "bench/floors", "bench/peers"].flatMap((folder) => {
    const names = readdirSync(join(root, folder)).filter((name) => name.endsWith(".ts"));
    const long = names.filter(
      (name) => readFileSync(join(root, folder, name), "utf8").split("\n").length > 201,
    );
    return [...(names.length > 17 ? [folder] : []), ...long.map((name) => `${folder}/${name}`)];
  });
  expect(large).toEqual([]);
});

test("no file of ours has grown past 300 lines", () => {
  const long = [...layers, "test"]
    .flatMap(files)
    .filter((file) => readFileSync(join(root, file), "utf8").split("\n").length > 301);
  expect(long).toEqual([]);
});
