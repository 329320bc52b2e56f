import type { Report } from "../figures/report.ts";
import { html } from "./html.ts";
import { markdown } from "./markdown.ts";

/** How a report is written in each form; JSON is the report itself. */
export const writers: Readonly<Record<"html" | "md", (report: Report) => string>> = { html, md: markdown };
