import { readdirSync, readFileSync } from "node:fs";
import { join, relative, resolve } from "node:path";
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
  const named = [...text.matchAll(/(?:from|import)\s*\(?\s*"([^"]+)"/g)].map((match) => match[1] as string);
  return named.map((name) => (name.startsWith(".") ? relative(root, resolve(root, file, "..", name)) : name));
}

/** What a layer may import: the rest is the wrong direction. */
const rules: { layer: RegExp; may: RegExp }[] = [
  { layer: /^shared\/task\//, may: /^(shared\/task\/|croner$)/ },
  { layer: /^shared\/ports\//, may: /^shared\/(task|ports)\// },
  {
    layer: /^shared\/journey\//,
    may: /^(shared\/((task|ports|journey)\/|agent\.ts)|@standard-schema\/spec$|node:async_hooks$)/,
  },
  {
    layer: /^shared\/adapters\//,
    may: /^(shared\/(task|ports|adapters)\/|@nats-io\/|@anthropic-ai\/|@google-cloud\/firestore$|node:crypto$)/,
  },
  { layer: /^shared\/(agent|tool)\.ts$/, may: /^(shared\/(task\/|tool\.ts)|@standard-schema\/spec$)/ },
  {
    layer: /^shared\/web\//,
    may: /^(shared\/(task|ports|journey|web)\/|hono(\/[\w-]+)?$|zod$)/,
  },
  { layer: /^shared\/testing/, may: /^shared\/((task|ports|journey|testing)\/|agent\.ts)/ },
  { layer: /^agents\/[\w-]+\.test\.ts$/, may: /^(shared\/(agent|testing)\.ts$|agents\/|[^./@][\w-]*$)/ },
  { layer: /^agents\//, may: /^(shared\/agent\.ts$|[^./@][\w-]*$)/ },
  { layer: /^functions\//, may: /^(shared\/|functions\/|node:|pawl:|@)/ },
];

test("imports point one way only", () => {
  const wrong = layers.flatMap(files).flatMap((file) => {
    const rule = rules.find(({ layer }) => layer.test(file));
    return rule
      ? imports(file)
          .filter((name) => !rule.may.test(name))
          .map((name) => `${file} imports ${name}`)
      : [];
  });
  expect(wrong).toEqual([]);
  expect(layers.flatMap(files).length).toBeGreaterThan(30);
});

test("no file of ours has grown past 300 lines", () => {
  const long = [...layers, "test"]
    .flatMap(files)
    .filter((file) => readFileSync(join(root, file), "utf8").split("\n").length > 301);
  expect(long).toEqual([]);
});
