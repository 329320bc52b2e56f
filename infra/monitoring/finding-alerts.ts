import { findingKinds } from "../../shared/reconcile/findings/findings.ts";
import type { FindingKind } from "../../shared/reconcile/findings/kind.ts";
import type { Alert } from "./alerts.ts";

/** One for each finding that somebody has to do something about: they last as long as the newest report names them. */
export const findingAlerts: readonly Alert[] = Object.entries<FindingKind>(findingKinds).flatMap(
  ([name, { severity, meaning, todo }]) => {
    if (severity === "note") return [];
    const words = name.split("_").map((word) => `${word.charAt(0).toUpperCase()}${word.slice(1)}`);
    return [
      {
        name: `PawlFinding${words.join("")}`,
        expr: `pawl_report_findings{finding="${name}",severity="${severity}"} > 0`,
        severity: severity === "broken" ? "critical" : "warning",
        summary: `the newest report names ${name.replaceAll("_", " ")}`,
        todo: `${meaning} ${todo}`,
        runbook: "docs/operator.md#findings",
      } satisfies Alert,
    ];
  },
);
