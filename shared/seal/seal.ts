import type { Head } from "../journal/entries.ts";
import type { Seal, Task } from "../task/document.ts";
import { contentText } from "../values/document-text.ts";

/** The seal of a document or journal; undefined where its last writer made none. */
export function sealIn({ seal, stamp }: Task | Head): Seal | undefined {
  return seal?.stamp === stamp ? seal : undefined;
}

/** What the seal of a task's document is made of. A document that lies under another key has none that fits. */
export function taskText(task: Task, key: string, before = task.seal?.before): string {
  return `task ${key} after ${before ?? ""}\n${contentText(task)}`;
}

/** The same of a journal. Its pages and large values are known by their names, which say what they hold. */
export function headText(head: Head, before = head.seal?.before): string {
  return `journal ${head.taskId} after ${before ?? ""}\n${contentText(head)}`;
}

/** The same for what is no task's: records, and texts of reports. */
export function recordText(name: string, text: string): string {
  return `record ${name}\n${text}`;
}

/** As long a text as its hash takes to be told from all others: 128 bits. */
const SEAL_CHARS = 22;

/** The seal as it is written: which key it is of, and the first 128 bits of the hash, which is given in base64url. */
export function sealOf(keyId: string, mac: string): string {
  return `${keyId}.${mac.slice(0, SEAL_CHARS)}`;
}

/** Which key a seal is of. */
export function keyIdOf(seal: string): string {
  return seal.slice(0, Math.max(0, seal.indexOf(".")));
}

/** Takes as long for a wrong seal as for the right one. */
export function isSameSeal(a: string, b: string): boolean {
  let difference = a.length ^ b.length;
  for (let i = 0; i < a.length; i++) difference |= a.charCodeAt(i) ^ b.charCodeAt(i % (b.length || 1));
  return difference === 0;
}
