/** A text, with every secret in it replaced by its name. */
export type Redact = (text: string) => string;

/** A shorter one is a word that any text may have: to replace it would only garble. */
const SHORTEST = 8;

/**
 * Of secrets by name. Its cost grows with the text and the number of secrets, and with nothing else. `shownAs`: what stands in
 * a secret's place.
 */
export function redactor(
  secrets: Readonly<Record<string, string | undefined>>,
  shownAs = (name: string) => `[secret ${name}]`,
): Redact {
  const known = Object.entries(secrets)
    .flatMap(([name, value = ""]) => forms(value).map((form) => ({ form, shown: shownAs(name) })))
    .filter(({ form }) => form.length >= SHORTEST)
    // The longest first: one may be part of another.
    .sort((a, b) => b.form.length - a.form.length);
  return (text) => known.reduce((rest, { form, shown }) => rest.split(form).join(shown), text);
}

/** As it is, and as it stands in JSON and in an address. */
function forms(value: string): string[] {
  const plain = value.trim();
  return [...new Set([plain, JSON.stringify(plain).slice(1, -1), encoded(plain)])];
}

function encoded(value: string): string {
  try {
    return encodeURIComponent(value);
  } catch {
    // A lone surrogate has no such form.
    return value;
  }
}
