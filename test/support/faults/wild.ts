import fc from "fast-check";
import type { Asked } from "../http/web.ts";

/** A request such as nobody should send. */
export interface Wild {
  readonly path: string;
  readonly asked: Asked;
}

/** One of the words of a text. */
const oneOf = (words: string) => fc.constantFrom(...words.split(" "));
const binary = fc.string({ unit: "binary", maxLength: 40 });
const escaped = (text: string) => encodeURIComponent(text.toWellFormed());

/** Whatever a request may be made of, the ids of real tasks among it. */
export function requests(ids: readonly string[]): fc.Arbitrary<Wild> {
  const known = fc.constantFrom(...ids);
  const id = fc.oneof(
    binary.map(escaped),
    { weight: 2, arbitrary: known },
    known.map((one) => `%20${one}`),
    known.map((one) => `..%2ftasks%2f${one}`),
    known.map((one) => [...one].map((char) => `%${char.charCodeAt(0).toString(16)}`).join("")),
    oneOf("% %zz %00 %ff . .. * %3e __proto__ __x__ health"),
    fc.constant("a".repeat(5_000)),
  );
  const place = fc.oneof(
    oneOf("/v1/tasks /v1/dead-letters /v1/agents /v1/openapi.json /metrics /health").map((at) => ["GET", at]),
    fc.constant(["POST", "/v1/tasks"]),
    fc.tuple(id, fc.constantFrom("", "/events")).map(([one, what]) => ["GET", `/v1/tasks/${one}${what}`]),
    fc.tuple(id, verb).map(([one, does]) => ["POST", `/v1/tasks/${one}/${does}`]),
  );
  const usual = fc.constant(undefined);
  const method = fc.oneof({ weight: 9, arbitrary: usual }, oneOf("GET POST HEAD PUT DELETE OPTIONS"));
  const headers = headersOf(known);
  const wild = fc
    .record({ place, query: queries(known), method, headers, body: bodies() })
    .map(({ place: [proper = "", path = ""], query, method: given = proper, headers: sent, body }) => {
      const asked = { method: given, headers: sent, ...(!/GET|HEAD/.test(given) && { body }) };
      return { path: query ? `${path}?${query}` : path, asked };
    });
  // Among so much that is wrong everywhere, some that is nearly right.
  const posted = (path: fc.Arbitrary<string>, body: fc.Arbitrary<string>) =>
    fc.record({ path, body }).map((one) => ({ path: one.path, asked: { method: "POST", body: one.body } }));
  const task = posted(fc.constant("/v1/tasks"), tasks());
  const operation = posted(
    fc.tuple(known, verb).map(([one, does]) => `/v1/tasks/${one}/${does}`),
    deeds(),
  );
  return fc.oneof({ weight: 3, arbitrary: wild }, task, operation);
}

const verb = oneOf("cancel redrive resolve signal approvals/go approvals/%00");

function queries(known: fc.Arbitrary<string>): fc.Arbitrary<string> {
  const word = fc.oneof(
    { weight: 3, arbitrary: binary },
    oneOf("0 -1 1e3 0x10 NaN true null failed completed tested other * >"),
    oneOf("0.a 253402300799999.a 1.a -1.a 1.5.a 9007199254740993 1e5 18446744073709551616"),
    fc.constantFrom("", "tested\n", "a".repeat(500)),
    known,
    fc.integer().map(String),
  );
  const name = oneOf("agent state cursor limit owner __proto__ agent[]");
  return fc
    .dictionary(name, word, { maxKeys: 3 })
    .map((all) => Object.entries(all).map(([key, value]) => `${key}=${escaped(value)}`))
    .map((all) => all.join("&"));
}

/** Bytes as HTTP allows them in a header, and nothing that ends it. */
function headersOf(known: fc.Arbitrary<string>): fc.Arbitrary<Record<string, string>> {
  const name = oneOf("idempotency-key last-event-id content-type content-length accept origin prefer host");
  const value = fc
    .oneof(fc.string({ unit: "binary-ascii", maxLength: 300 }), binary, known, fc.constant("x".repeat(3_000)))
    .map((text) => text.replaceAll(/[^\x20-\x7e\x80-\xff]/g, "~"));
  return fc.dictionary(name, value, { maxKeys: 3 });
}

/** JSON values, mostly such as break something. */
function values(): fc.Arbitrary<string> {
  const odd = fc.oneof(
    oneOf("1e400 -1e400 1e-400 -0 0.1e9999 null {} [] true false"),
    oneOf('"" "tested" "\\ud800" "\\udfff\\ud800" "\\u0000" "a" {"a":"b"}'),
    oneOf('{"__proto__":{"polluted":true}} {"a":{"constructor":1}} {"what":"fail"}'),
    oneOf('"9999-12-31T23:59:59-23:59" "0000-01-01T00:00:00Z" "2026-02-30T00:00:00Z" "2099-01-01T00:00:00Z"'),
    fc.constant("9".repeat(400)),
  );
  const text = fc.string({ unit: "binary" }).map((one) => JSON.stringify(one));
  return fc.oneof({ weight: 2, arbitrary: odd }, fc.json({ maxDepth: 3 }), text);
}

/** Fields by names that mean something somewhere. */
function fields(maxLength: number): fc.Arbitrary<string[]> {
  const key = fc.oneof(
    { weight: 2, arbitrary: oneOf("id at labels orderingKey msgId") },
    oneOf("name value approved note happened fail receipt fromScratch"),
    oneOf("__proto__ constructor toString hasOwnProperty"),
  );
  const field = fc.tuple(key, values()).map(([name, value]) => `${JSON.stringify(name)}:${value}`);
  return fc.array(field, { maxLength });
}

/** Tasks with something odd about them, if anything. */
function tasks(): fc.Arbitrary<string> {
  return fields(2).map((more) => `{${['"agent":"tested","input":{"n":1}', ...more].join(",")}}`);
}

/** What operators say, with anything in it. */
function deeds(): fc.Arbitrary<string> {
  const form = oneOf(
    '{} {"happened":true,"receipt":X} {"happened":false} {"fail":true} {"happened":X} {"name":"n","value":X} ' +
      '{"name":X} {"approved":true,"note":X} {"approved":false} {"fromScratch":true} {"fromScratch":X}',
  );
  return fc.tuple(form, values()).map(([text, value]) => text.replace("X", () => value));
}

/** JSON of any shape, near misses of what is asked for, and what is no JSON at all. */
function bodies(): fc.Arbitrary<string | Uint8Array> {
  const depth = fc.constantFrom(62, 63, 1_000, 100_000);
  const nested = fc
    .tuple(depth, fc.constantFrom(["[", "]"], ['{"a":', "}"]))
    .map(([times, [open = "", shut = ""]]) => open.repeat(times) + 1 + shut.repeat(times))
    .map((deep) => `{"agent":"tested","input":{"a":${deep}}}`);
  return fc.oneof(
    tasks(),
    deeds(),
    nested,
    fields(6).map((all) => `{${all.join(",")}}`),
    fc.tuple(tasks(), fc.nat(60)).map(([whole, at]) => whole.slice(0, at)),
    fc.json(),
    fc.string({ unit: "binary" }),
    fc.uint8Array({ maxLength: 60 }),
  );
}
