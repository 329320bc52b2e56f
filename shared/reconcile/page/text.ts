/** What a model or a stranger wrote, as text of a page or of an attribute. */
export function text(value: string): string {
  return value.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);
}
