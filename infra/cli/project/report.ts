import { spawn } from "node:child_process";
import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Command, Option } from "commander";
import type { Config } from "../../../functions/wiring/config.ts";
import { wire } from "../../../functions/wiring/wire.node.ts";
import {
  FORMATS,
  type Format,
  levelOf,
  listReports,
  readReport,
} from "../../../shared/reconcile/books/reports.ts";
import { logger, printableLines, say, sayJson } from "../output.ts";

interface Options {
  readonly week?: string;
  readonly month?: string;
  readonly format?: Format;
  readonly open?: boolean;
  readonly list?: boolean;
  readonly json?: boolean;
}

const LEVELS = { ok: "ok    ", look: "LOOK  ", broken: "BROKEN" } as const;

export function addReport(program: Command, config: () => Config): void {
  program
    .command("report")
    .description("show a week's or month's report")
    .option("--week <week>", "such as 2026-W46; the newest by default")
    .option("--month <month>", "such as 2026-11")
    .addOption(new Option("--format <format>", "how it is written").choices(FORMATS).default("md"))
    .option("--open", "write the HTML to a file and open it in a browser")
    .option("--list", "list all reports instead")
    .option("--json", "the same as --format json")
    .addHelpText("after", "\nExample:\n  pawl report --week 2026-W46 --format html > report.html")
    .action(async ({ week, month, format = "md", open, list, json = false }: Options, command: Command) => {
      if (week !== undefined && month !== undefined) command.error("Choose --week or --month, not both");
      await using deps = await wire(config(), logger(json));
      if (list) {
        for (const one of await listReports(deps.store)) {
          if (json) sayJson(one);
          else say(`${one.name.padEnd(9)} ${LEVELS[levelOf(one)]} ${one.verdict}`);
        }
        return;
      }
      const form = open ? "html" : json ? "json" : format;
      const { text, listed } = await readReport(deps.store, form, week ?? month);
      // Markdown and JSON are for terminals too; HTML has rules of its own for what it must not contain.
      const shown = form === "html" ? text : printableLines(text);
      if (!open) return void process.stdout.write(shown.endsWith("\n") ? shown : `${shown}\n`);
      const file = join(await mkdtemp(join(tmpdir(), "pawl-report-")), `${listed.name}.html`);
      await writeFile(file, text);
      say(file);
      const opener = process.platform === "darwin" ? "open" : "xdg-open";
      // Where there is no browser, the file is there all the same.
      spawn(opener, [file], { stdio: "ignore", detached: true })
        .on("error", () => {})
        .unref();
    });
}
