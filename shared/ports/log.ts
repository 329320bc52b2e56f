export type LogLevel = "info" | "warn" | "error";
export type LogFields = Readonly<Record<string, string | number | boolean | undefined>>;

/** One line per event: a short name that doesn't change, and fields. Never an input, a result or a secret. */
export type Log = (level: LogLevel, event: string, fields?: LogFields) => void;
