import type { Json, JsonObject } from "../../../shared/values/json.ts";

/** Schemas that contain themselves end here: below it, only what is required is filled in. */
const DEEPEST = 6;

/**
 * A value that fits a JSON Schema, the same one every time. What no generator can know, such as what a pattern means, is
 * tried with a few usual texts; whoever checks the value says what is still wrong with it.
 */
export function sampleOf(schema: Json | undefined, name = "value", root = schema, depth = 0): Json {
  if (typeof schema !== "object" || schema === null || Array.isArray(schema)) return `example ${name}`;
  if (depth > 4 * DEEPEST) return null;
  const inner = (one: Json | undefined, of = name) => sampleOf(one, of, root, depth + 1);
  if (schema.const !== undefined) return schema.const;
  if (Array.isArray(schema.enum) && schema.enum.length > 0) return schema.enum[0] as Json;
  if (schema.default !== undefined) return schema.default;
  if (Array.isArray(schema.examples) && schema.examples.length > 0) return schema.examples[0] as Json;
  if (typeof schema.$ref === "string") return inner(referred(schema.$ref, root));
  const choice = [schema.anyOf, schema.oneOf].find(Array.isArray);
  if (choice) return inner({ ...without(schema, "anyOf", "oneOf"), ...asObject(simplest(choice)) });
  if (Array.isArray(schema.allOf)) return inner(merged(schema, schema.allOf, root));
  switch (typeOf(schema)) {
    case "object":
      return objectOf(schema, inner, depth);
    case "array":
      return arrayOf(schema, inner, depth);
    case "integer":
      return numberOf(schema, 1);
    case "number":
      return numberOf(schema, 0);
    case "boolean":
      return true;
    case "null":
      return null;
    default:
      return textOf(schema, name);
  }
}

type Inner = (schema: Json | undefined, name?: string) => Json;

function typeOf({ type, properties, items, prefixItems, minimum, maximum }: JsonObject): string {
  const named = Array.isArray(type) ? (type.find((one) => one !== "null") ?? type[0]) : type;
  if (typeof named === "string") return named;
  if (properties !== undefined) return "object";
  if (items !== undefined || prefixItems !== undefined) return "array";
  return minimum !== undefined || maximum !== undefined ? "number" : "string";
}

function objectOf(schema: JsonObject, inner: Inner, depth: number): JsonObject {
  const required = Array.isArray(schema.required) ? schema.required.map(String) : [];
  const properties = asObject(schema.properties);
  const names = depth < DEEPEST ? new Set([...Object.keys(properties), ...required]) : new Set(required);
  return Object.fromEntries([...names].map((name) => [name, inner(properties[name] ?? {}, name)]));
}

function arrayOf(schema: JsonObject, inner: Inner, depth: number): Json[] {
  const { items, prefixItems, minItems = depth < DEEPEST ? 1 : 0, maxItems = Infinity } = schema;
  const first = Array.isArray(prefixItems) ? prefixItems.map((one) => inner(one as Json)) : [];
  const length = Math.min(Math.max(Number(minItems), first.length), Number(maxItems), 20);
  while (items !== undefined && items !== false && first.length < length) first.push(inner(items));
  return first.slice(0, length);
}

/** The smallest number from 1 on that is allowed. `step`: 1 for whole numbers. */
function numberOf(schema: JsonObject, step: number): number {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf } = schema as Record<
    string,
    number
  >;
  const grain = multipleOf ?? (step || 0.5);
  const low = Math.max(
    minimum ?? -Infinity,
    exclusiveMinimum === undefined ? -Infinity : exclusiveMinimum + grain,
  );
  const high = Math.min(
    maximum ?? Infinity,
    exclusiveMaximum === undefined ? Infinity : exclusiveMaximum - grain,
  );
  const wish = Math.min(Math.max(1, low), high);
  if (multipleOf === undefined) return step ? Math.ceil(wish) : wish;
  const above = Math.ceil(wish / multipleOf) * multipleOf;
  return above <= high ? above : Math.floor(high / multipleOf) * multipleOf;
}

const FORMATS: Readonly<Record<string, string>> = {
  date: "2026-01-31",
  "date-time": "2026-01-31T12:00:00Z",
  time: "12:00:00Z",
  duration: "PT1H",
  email: "someone@example.com",
  uri: "https://example.com/",
  url: "https://example.com/",
  hostname: "example.com",
  ipv4: "192.0.2.1",
  ipv6: "2001:db8::1",
  uuid: "4a3c7a52-6a0e-4d0b-9a35-0f6f1f6e2c11",
};

/** For patterns: texts that people often ask for. */
const USUAL = [
  ...[
    "a",
    "A",
    "1",
    "ab",
    "AB",
    "12",
    "abc",
    "ABC",
    "123",
    "1234",
    "12345",
    "abc-123",
    "ABC-123",
    "ABC123",
    "#1",
  ],
  ...[
    "true",
    "v1.0.0",
    "1.0.0",
    "1.50",
    "EUR",
    "de",
    "en-US",
    "+431234567",
    "#aabbcc",
    "/path",
    "0x1f",
    "12:30",
  ],
  ...Object.values(FORMATS),
];

function textOf(schema: JsonObject, name: string): string {
  const { format, pattern, minLength = 0, maxLength = Infinity } = schema;
  const fits = (text: string) =>
    [...text].length >= Number(minLength) && [...text].length <= Number(maxLength) && matches(text, pattern);
  const words = `example ${name}`;
  const usual = [FORMATS[String(format)] ?? words, words, name, ...USUAL].find(fits);
  if (usual !== undefined) return usual;
  return words.padEnd(Math.min(Number(minLength), 10_000), "x").slice(0, Number(maxLength));
}

function matches(text: string, pattern: Json | undefined): boolean {
  if (typeof pattern !== "string") return true;
  try {
    return new RegExp(pattern, "u").test(text);
  } catch {
    return true;
  }
}

/** Of alternatives the first that is something: null says least. */
const simplest = (choice: readonly unknown[]): Json =>
  (choice.find((one) => asObject(one as Json).type !== "null") ?? choice[0] ?? {}) as Json;

function merged(schema: JsonObject, parts: readonly unknown[], root: Json | undefined): JsonObject {
  const resolved = parts.map((part) => {
    const one = asObject(part as Json);
    return typeof one.$ref === "string" ? asObject(referred(one.$ref, root)) : one;
  });
  const all = [without(schema, "allOf"), ...resolved];
  const properties = Object.assign({}, ...all.map((one) => asObject(one.properties))) as JsonObject;
  const required = all.flatMap((one) => (Array.isArray(one.required) ? one.required : []));
  const rest = Object.assign({}, ...all) as JsonObject;
  return { ...rest, ...(Object.keys(properties).length > 0 && { properties, required }) };
}

/** Of the same document only: "#/$defs/Address". */
function referred(reference: string, root: Json | undefined): Json | undefined {
  if (!reference.startsWith("#")) return {};
  let at: Json | undefined = root;
  for (const part of reference.slice(1).split("/").filter(Boolean))
    at = asObject(at)[decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~")];
  return at;
}

function asObject(value: Json | undefined): JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as JsonObject) : {};
}

function without(schema: JsonObject, ...names: readonly string[]): JsonObject {
  return Object.fromEntries(Object.entries(schema).filter(([name]) => !names.includes(name))) as JsonObject;
}
