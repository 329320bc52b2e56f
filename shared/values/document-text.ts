/** A task's document, or its journal's head. */
interface Sealable {
  readonly seal?: object;
}

/** Nobody changes a document, each is followed by another: so its text is made once, however often it is asked for. */
const texts = new WeakMap<Sealable, string>();

/** Its content, which is all but its seal. */
export function contentText(document: Sealable): string {
  const known = texts.get(document);
  if (known !== undefined) return known;
  const { seal: _, ...content } = document;
  const text = JSON.stringify(content);
  texts.set(document, text);
  return text;
}

/** The whole of it, as it is stored. */
export function documentText(document: Sealable): string {
  const text = contentText(document);
  return document.seal ? `${text.slice(0, -1)},"seal":${JSON.stringify(document.seal)}}` : text;
}

/** The same content under another seal. */
export function resealed<T extends Sealable>(document: T, seal: NonNullable<T["seal"]>): T {
  const sealed = { ...document, seal };
  texts.set(sealed, contentText(document));
  return sealed;
}
