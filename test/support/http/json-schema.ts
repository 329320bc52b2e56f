import fc from "fast-check";

export type Schema = Record<string, unknown>;

/** Values of a schema, of the few kinds that the API's document uses. `given`: for properties of which it can't say all. */
export function valuesOf(
  schema: Schema,
  given: Record<string, fc.Arbitrary<unknown>> = {},
): fc.Arbitrary<unknown> {
  const { type, anyOf, properties, additionalProperties, required = [], pattern } = schema;
  if ("const" in schema) return fc.constant(schema.const);
  if (Array.isArray(anyOf) && !properties)
    return fc.oneof(...(anyOf as Schema[]).map((one) => valuesOf(one)));
  if (Array.isArray(schema.enum)) return fc.constantFrom(...(schema.enum as unknown[]));
  if (type === "integer") return fc.integer({ min: Number(schema.minimum), max: Number(schema.maximum) });
  if (type === "boolean") return fc.boolean();
  if (type === "string" && typeof pattern === "string") {
    const exact = new RegExp(pattern);
    // What may not come next can't be generated, only left out.
    const free = new RegExp(pattern.replaceAll(/\(\?![^)]*\)/g, ""));
    const { minLength = 0, maxLength = 200 } = schema as { minLength?: number; maxLength?: number };
    const isLong = ({ length }: string) => length >= minLength && length <= maxLength;
    return fc.stringMatching(free).filter((text) => exact.test(text) && isLong(text));
  }
  const maxLength = Math.min(30, Number(schema.maxLength ?? 30));
  if (type === "string")
    return fc.string({ unit: "grapheme", minLength: Number(schema.minLength ?? 0), maxLength });
  if (type === "object" && properties) {
    const shape = Object.entries(properties as Record<string, Schema>).map(([name, one]) => [
      name,
      given[name] ?? valuesOf(one),
    ]);
    const any = anyOf as { required: string[] }[] | undefined;
    return fc
      .record<Schema>(Object.fromEntries(shape), { requiredKeys: required as string[] })
      .filter((value) => any?.some((one) => one.required.every((name) => name in value)) ?? true);
  }
  if (type === "object") {
    const maxKeys = Number(schema.maxProperties ?? 20);
    const key = fc.string({ maxLength: 20 }).filter((text) => text !== "__proto__");
    return fc.dictionary(key, valuesOf(additionalProperties as Schema), { maxKeys, size: "+1" });
  }
  if (Object.keys(schema).length === 0) return fc.jsonValue({ maxDepth: 3 }).filter(isPlain);
  throw new Error(`no values for ${JSON.stringify(schema)}`);
}
/** Neither the one key nor the whole numbers that JSON allows and Pawl, to be exact, does not. */
const isPlain = (value: unknown) => !/"__proto__"|(?<![.\d])\d{16,}(?![.\d])/.test(JSON.stringify(value));
