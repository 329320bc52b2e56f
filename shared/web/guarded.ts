/** Of every answer: what a task holds is nobody else's, so no cache keeps it, and no browser takes it for a page. */
export const GUARDED = {
  "x-content-type-options": "nosniff",
  "cache-control": "no-store",
} as const satisfies Record<string, string>;

/** What holds no task's data says itself that everybody may keep it. */
export function isPublic({ headers }: Response): boolean {
  return headers.get("cache-control")?.startsWith("public") ?? false;
}
