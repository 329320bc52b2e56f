import type { TaskStore } from "../ports/store.ts";
import { PawlError } from "../task/errors.ts";

export const FORMATS = ["html", "md", "json"] as const;
export type Format = (typeof FORMATS)[number];

/** A report in the list of all. */
export interface Listed {
  /** An ISO week or a month: "2026-W46", "2026-11". */
  readonly name: string;
  readonly from: number;
  readonly to: number;
  /** Its first line. */
  readonly verdict: string;
  readonly ok: boolean;
  /** What its texts are stored under. */
  readonly stamp: string;
}

/** No task can have this id, so nothing of a task's is ever stored beside it. */
export const REPORTS = "__reports__";
export const LIST = "reports";

/** Newest first. */
export async function listReports(store: Pick<TaskStore, "getRecord">): Promise<readonly Listed[]> {
  const record = await store.getRecord(LIST);
  return record ? (JSON.parse(record.text) as Listed[]) : [];
}

/** The newest week's without a name. */
export async function readReport(
  store: Pick<TaskStore, "getRecord" | "getPart">,
  format: Format,
  name?: string,
): Promise<{ listed: Listed; text: string }> {
  const all = await listReports(store);
  const listed =
    name === undefined ? all.find((one) => one.name.includes("W")) : all.find((one) => one.name === name);
  const text = listed && (await store.getPart(REPORTS, partOf(listed, format)));
  if (listed && text !== undefined) return { listed, text };
  const known =
    all.length > 0
      ? `There are: ${all
          .slice(0, 12)
          .map((one) => one.name)
          .join(", ")}`
      : "There is none yet: run `pawl reconcile`";
  throw new PawlError("report_unknown", `There is no report ${name ?? "of any week"}. ${known}`);
}

export const partOf = ({ name, stamp }: Pick<Listed, "name" | "stamp">, format: Format) =>
  `${name}-${stamp}-${format}`;
