import { PawlError } from "../errors/errors.ts";

/** What one owner, or one agent, may take at most. A part that is left out, or null, has no limit. */
export interface Quota {
  /** Tasks that are not over. */
  readonly tasks?: number | null;
  /** Of its tasks' documents. As a share ("50%"), of what the store holds at most, where that has an end. */
  readonly bytes?: number | Share | null;
  /** Of inputs, in each queue: of its tasks that are not over. As a share, of what the queue holds at most. */
  readonly queue?: number | Share | null;
  /** Tasks taken in a minute. */
  readonly submits?: number | null;
  /** Dollars that its tasks spend in a day. */
  readonly usd?: number | null;
}

export type QuotaPart = keyof Quota;
export type Share = `${number}%`;

interface Part {
  /** As `pawl quota --help` and errors say it. */
  readonly means: string;
  /** Completes "it should be …". */
  readonly form: string;
  /** Undefined where the text is not of its form. */
  readonly read: (text: string) => number | Share | undefined;
}

const whole = (text: string) => (/^\d{1,15}$/.test(text) ? Number(text) : undefined);

const UNITS: Readonly<Record<string, number>> = {
  "": 1,
  kB: 1e3,
  MB: 1e6,
  GB: 1e9,
  KiB: 1024,
  MiB: 1024 ** 2,
  GiB: 1024 ** 3,
};

function bytes(text: string): number | Share | undefined {
  if (/^(100|[1-9]?\d)%$/.test(text)) return text as Share;
  const [, number, unit = ""] = /^(\d{1,15})([kMG]i?B|KiB)?$/.exec(text) ?? [];
  const factor = UNITS[unit];
  return number === undefined || factor === undefined ? undefined : Number(number) * factor;
}

/** What a quota is made of, in the order in which it is written. */
export const quotaParts = {
  tasks: { means: "tasks that are not over", form: "a whole number", read: whole },
  bytes: {
    means: "bytes of its tasks' documents",
    form: "a number of bytes such as 64MB or 1GiB, or a share of the store such as 50%",
    read: bytes,
  },
  queue: {
    means: "bytes of inputs of its tasks that are not over, in one queue",
    form: "a number of bytes such as 16MB, or a share of the queue such as 25%",
    read: bytes,
  },
  submits: { means: "tasks taken in a minute", form: "a whole number", read: whole },
  usd: {
    means: "dollars spent since midnight UTC",
    form: "a number of dollars such as 20 or 2.50",
    read: (text) => (/^\d{1,9}(\.\d{1,6})?$/.test(text) ? Number(text) : undefined),
  },
} as const satisfies Record<QuotaPart, Part>;

export const partNames = Object.keys(quotaParts) as readonly QuotaPart[];

/** "none" is no limit, where a default has one. */
export function readPart(name: QuotaPart, text: string): number | Share | null {
  if (text === "none") return null;
  const value = quotaParts[name].read(text);
  if (value !== undefined) return value;
  throw new PawlError(
    "setting_invalid",
    `The quota's ${name} is ${JSON.stringify(text.slice(0, 100))}; it should be ${quotaParts[name].form}, or none`,
  );
}

/** "tasks=1000,bytes=64MB,submits=600,usd=20", or a part of it; "none" and nothing are no limits. */
export function readQuota(text: string): Quota {
  const quota: { -readonly [P in QuotaPart]?: number | Share | null } = {};
  if (text.trim() === "" || text.trim() === "none") return quota as Quota;
  for (const one of text.split(",")) {
    const [name = "", value = "", ...more] = one.trim().split("=");
    if (!partNames.includes(name as QuotaPart) || more.length > 0)
      throw new PawlError(
        "setting_invalid",
        `A quota has no part ${JSON.stringify(one.trim().slice(0, 100))}. Write it as tasks=1000,bytes=64MB,submits=600,usd=20, with what of it is to have a limit`,
      );
    quota[name as QuotaPart] = readPart(name as QuotaPart, value);
  }
  return quota as Quota;
}

/** As `readQuota` takes it. */
export function showQuota(quota: Quota): string {
  const parts = partNames.flatMap((name) => {
    const value = quota[name];
    return value === undefined ? [] : [`${name}=${value ?? "none"}`];
  });
  return parts.join(",") || "none";
}
