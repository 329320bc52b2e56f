import { expect, test } from "vitest";
import { redacted, redactorOf } from "../../functions/wiring/secrets.ts";
import type { LogFields } from "../../shared/ports/log.ts";
import { redactor } from "../../shared/values/redact.ts";

test("a secret is replaced by its name, as it is, in JSON and in an address, however often", () => {
  const redact = redactor({ TOKEN: 'ab"cd\nef&gh' });
  expect(redact('1 ab"cd\nef&gh 2 ab"cd\nef&gh')).toBe("1 [secret TOKEN] 2 [secret TOKEN]");
  expect(redact(JSON.stringify({ t: 'ab"cd\nef&gh' }))).toBe('{"t":"[secret TOKEN]"}');
  expect(redact(`?q=${encodeURIComponent('ab"cd\nef&gh')}`)).toBe("?q=[secret TOKEN]");
});

test("one that is part of another leaves nothing of it; a short one is any word", () => {
  const redact = redactor({ SHORT: "is", PART: "abcdefgh", WHOLE: "abcdefgh-and-more", NONE: undefined });
  expect(redact("this is abcdefgh-and-more or abcdefgh")).toBe("this is [secret WHOLE] or [secret PART]");
});

test("a megabyte with forty secrets takes a moment", () => {
  const secrets = Object.fromEntries(Array.from({ length: 40 }, (_, i) => [`S${i}`, `secret-number-${i}-`]));
  const text = "secret-number-x ".repeat(65_536);
  const begun = performance.now();
  expect(redactor(secrets)(text)).toBe(text);
  expect(performance.now() - begun).toBeLessThan(5_000);
});

test("of Pawl's own secrets too, but not the path of a file", () => {
  const lines: LogFields[] = [];
  const env = { PAWL_RUN_SECRET: "0123456789abcdef", NATS_CREDS: "/etc/nats/pawl.creds", JIRA: "jira-token" };
  const log = redacted((_level, _event, fields = {}) => void lines.push(fields), redactorOf(["JIRA"], env));
  log("info", "said", { a: "Bearer 0123456789abcdef", b: "/etc/nats/pawl.creds", c: "jira-token", d: 7 });
  expect(lines).toEqual([
    { a: "Bearer [secret PAWL_RUN_SECRET]", b: "/etc/nats/pawl.creds", c: "[secret JIRA]", d: 7 },
  ]);
});
