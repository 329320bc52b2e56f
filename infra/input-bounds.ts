import type { StandardSchemaV1 } from "@standard-schema/spec";
import type { Json, JsonObject } from "../shared/values/json.ts";

/** Schemas that can say themselves as JSON Schema: https://standardschema.dev/json-schema. */
interface JsonSchemaSource {
  readonly "~standard": {
    readonly jsonSchema?: { input(options: object): Record<string, unknown> };
  };
}

/** What a schema says of its input, for people who have to write one: what has no JSON Schema is "anything". */
export function shownSchema(schema: StandardSchemaV1): JsonObject | undefined {
  const source = (schema as unknown as JsonSchemaSource)["~standard"].jsonSchema;
  const options = { target: "draft-2020-12", libraryOptions: { unrepresentable: "any" } };
  try {
    return source && (JSON.parse(JSON.stringify(source.input(options))) as JsonObject);
  } catch {
    return undefined;
  }
}

/**
 * What surely every input keeps to that a schema accepts, as JSON Schema: for those who can't ask the schema itself.
 * Of a zod schema it is made here, and leaves out whatever only zod's code can decide; another one is taken at its word.
 */
export function boundsOf(schema: StandardSchemaV1): JsonObject | undefined {
  return isZod(schema) ? bounds(schema, []) : shownSchema(schema);
}

/** The part of zod's own description of a schema that is read here. */
interface Zod {
  readonly _zod: { readonly def: Def };
}

interface Def {
  readonly type: string;
  readonly coerce?: boolean;
  readonly format?: string;
  readonly checks?: readonly { readonly _zod: { readonly def: Check } }[];
  readonly shape?: Readonly<Record<string, Zod>>;
  readonly catchall?: Zod;
  readonly element?: Zod;
  readonly innerType?: Zod;
  readonly valueType?: Zod;
  readonly mode?: string;
  readonly options?: readonly Zod[];
  readonly left?: Zod;
  readonly right?: Zod;
  readonly in?: Zod;
  readonly values?: readonly unknown[];
  readonly entries?: Readonly<Record<string, unknown>>;
}

interface Check {
  readonly check: string;
  readonly format?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly length?: number;
  readonly value?: unknown;
  readonly inclusive?: boolean;
}

const ANYTHING: JsonObject = {};
const INTEGERS: ReadonlySet<unknown> = new Set(["safeint", "int32", "uint32"]);

const isZod = (schema: unknown): schema is Zod =>
  typeof (schema as Partial<Zod>)._zod?.def?.type === "string";

/** `above`: the schemas that this one is a part of; one that is a part of itself is "anything" there. */
function bounds(schema: Zod, above: readonly Zod[]): JsonObject {
  const { def } = schema._zod;
  if (def.coerce || above.includes(schema)) return ANYTHING;
  const part = (one: Zod | undefined) => (one ? bounds(one, [...above, schema]) : ANYTHING);
  switch (def.type) {
    case "string":
    case "template_literal":
      return { type: "string", ...lengths(def, "minLength", "maxLength") };
    case "number":
      return { type: isInteger(def) ? "integer" : "number", ...range(def) };
    case "boolean":
    case "null":
      return { type: def.type };
    case "enum":
      return oneOf(enumValues(def.entries ?? {}));
    case "literal":
      return oneOf(def.values ?? []);
    case "array":
      return { type: "array", items: part(def.element), ...lengths(def, "minItems", "maxItems") };
    case "tuple":
      return { type: "array" };
    case "object":
      return object(def, part);
    case "record":
      return { type: "object", additionalProperties: def.mode === "loose" ? true : part(def.valueType) };
    case "union":
      return { anyOf: (def.options ?? []).map(part) };
    case "intersection":
      return { allOf: [open(part(def.left)), open(part(def.right))] };
    case "nullable":
      return { anyOf: [part(def.innerType), { type: "null" }] };
    case "optional":
    case "nonoptional":
    case "default":
    case "prefault":
    case "readonly":
      return part(def.innerType);
    case "pipe":
      return part(def.in);
    default:
      return ANYTHING;
  }
}

function object(def: Def, part: (one: Zod) => JsonObject): JsonObject {
  const shape = Object.entries(def.shape ?? {});
  const required = shape.flatMap(([name, one]) => (needsValue(one) ? [name] : []));
  const isStrict = def.catchall?._zod.def.type === "never";
  return {
    type: "object",
    properties: Object.fromEntries(shape.map(([name, one]) => [name, part(one)])),
    ...(required.length > 0 && { required }),
    ...(def.catchall && { additionalProperties: isStrict ? false : part(def.catchall) }),
  };
}

/** A key that one side of an intersection does not know may be known to the other. */
function open(side: JsonObject): JsonObject {
  if (side.additionalProperties === undefined) return side;
  return { ...side, additionalProperties: true };
}

const VALUES = new Set(
  "string template_literal number boolean null enum array tuple object record".split(" "),
);

/** Whether it surely refuses a key that is missing: whoever coerces, transforms or has a default may take it. */
function needsValue(schema: Zod): boolean {
  const { def } = schema._zod;
  if (def.coerce) return false;
  if (VALUES.has(def.type)) return true;
  if (def.type === "literal") return !def.values?.includes(undefined);
  if (def.type === "union") return def.options?.every(needsValue) ?? false;
  if (def.type === "intersection") return [def.left, def.right].some((one) => one && needsValue(one));
  const inner = def.type === "pipe" ? def.in : def.innerType;
  return ["nullable", "readonly", "pipe"].includes(def.type) && inner !== undefined && needsValue(inner);
}

const checksOf = ({ checks = [] }: Def): Check[] => checks.map((one) => one._zod.def);

/** A check that changes the value (trim, say) comes before others: what they see is not what was sent. */
const isChanging = ({ check }: Check) => check === "overwrite";

function lengths(def: Def, least: string, most: string): JsonObject {
  const checks = checksOf(def);
  if (checks.some(isChanging)) return {};
  const min = checks.flatMap(({ check, minimum, length }) =>
    check === "min_length" ? [minimum ?? 0] : check === "length_equals" ? [length ?? 0] : [],
  );
  const max = checks.flatMap(({ check, maximum, length }) =>
    check === "max_length" ? [maximum ?? Infinity] : check === "length_equals" ? [length ?? Infinity] : [],
  );
  return {
    ...(min.length > 0 && { [least]: Math.max(...min) }),
    ...(Number.isFinite(Math.min(...max)) && { [most]: Math.min(...max) }),
  };
}

/** A number's own format is a check of it too. */
function isInteger(def: Def): boolean {
  const checks = checksOf(def);
  return (
    INTEGERS.has(def.format) ||
    (!checks.some(isChanging) && checks.some(({ format }) => INTEGERS.has(format)))
  );
}

function range(def: Def): JsonObject {
  const checks = checksOf(def);
  if (checks.some(isChanging)) return {};
  const of = (name: string, inclusive: boolean) =>
    checks.flatMap((one) =>
      one.check === name && (one.inclusive ?? true) === inclusive && Number.isFinite(one.value)
        ? [one.value as number]
        : [],
    );
  const [above, from, below, to] = [
    of("greater_than", false),
    of("greater_than", true),
    of("less_than", false),
    of("less_than", true),
  ];
  return {
    ...(above.length > 0 && { exclusiveMinimum: Math.max(...above) }),
    ...(from.length > 0 && { minimum: Math.max(...from) }),
    ...(below.length > 0 && { exclusiveMaximum: Math.min(...below) }),
    ...(to.length > 0 && { maximum: Math.min(...to) }),
  };
}

/** TypeScript's numeric enums are objects that also lead back from values to names. */
function enumValues(entries: Readonly<Record<string, unknown>>): unknown[] {
  const numbers = Object.values(entries).filter((one) => typeof one === "number");
  return Object.entries(entries).flatMap(([name, value]) => (numbers.includes(Number(name)) ? [] : [value]));
}

function oneOf(values: readonly unknown[]): JsonObject {
  const isJson = (one: unknown) => one === null || ["string", "number", "boolean"].includes(typeof one);
  const known = values.filter((one) => one !== undefined);
  return known.length > 0 && known.every(isJson) ? { enum: known as Json[] } : ANYTHING;
}
