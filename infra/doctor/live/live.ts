import type { LeftQueue } from "../../../shared/dispatch/queues.ts";
import type { QueueInfo } from "../../../shared/ports/bus.ts";
import type { FieldDifference } from "../../../shared/ports/queue-fields.ts";
import type { Settings } from "../../../shared/settings/settings.ts";
import type { Millis } from "../../../shared/task/document.ts";
import type { RightsDrift } from "../../creds/compare.ts";
import type { Application } from "../application.ts";

/** What is seen of a deployment. What could not be looked at is not in it. */
export interface Live {
  readonly now: Millis;
  readonly settings: Settings;
  /** What the settings say is wrong, a line each. */
  readonly problems: readonly string[];
  /** NATS is on this machine: somebody tries it out. */
  readonly isLocal: boolean;
  readonly nats?: { readonly version: string; readonly cluster?: string; readonly asksWho: boolean };
  readonly sync?: NonNullable<Application["sync"]>;
  /** How identities differ from what `pawl creds` gives them, where agents are kept apart. */
  readonly rights: readonly RightsDrift[];
  readonly queues: readonly { readonly stream: string; readonly info: QueueInfo }[];
  readonly left: readonly LeftQueue[];
  readonly isCaptured?: boolean;
  /** Buckets that are not as they should be. */
  readonly buckets: readonly { readonly name: string; readonly differences: readonly FieldDifference[] }[];
  /** How far clocks are ahead of this machine's. */
  readonly clocks: Readonly<Record<string, number>>;
  /** What was refused, of what a doctor has to ask. */
  readonly refused: readonly { readonly what: string; readonly reason: string }[];
  /** Addresses of WebSockets that can't be reached. */
  readonly unreached: readonly { readonly url: string; readonly reason: string }[];
  /** Secrets that agents declare, and are not set here. */
  readonly secrets: readonly { readonly agent: string; readonly missing: readonly string[] }[];
  /** Work that nobody has begun, and since when it is due. */
  readonly overdue: readonly { readonly what: string; readonly since: Millis }[];
  /** When the dispatch function last began, and since when it is due; whether anything needs it that no runner sees to. */
  readonly dispatched?: { readonly at?: Millis; readonly begunAt: Millis; readonly hasSchedules: boolean };
  readonly reconciled?: { readonly at?: Millis; readonly begunAt: Millis };
  readonly firestore?: { readonly missing: readonly string[]; readonly policies: readonly string[] };
}
