import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { findChromium } from "../../../infra/local/find-chromium.ts";

const ARGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  // This machine under a name that browsers don't trust over plain HTTP, as they don't an address of the local network.
  "--host-resolver-rules=MAP lan.test 127.0.0.1",
];

/** The machine's own Chromium, installed first where it is missing. */
export async function launch(): Promise<Browser> {
  const executablePath = await findChromium(process.env, console.log);
  return chromium.launch({ executablePath, args: ARGS });
}

/** A page, and what went wrong on it: messages of the console, errors, dialogs. */
export interface Visit {
  readonly page: Page;
  readonly wrong: string[];
}

export async function visit(
  browser: Browser,
  url: string,
  token: string | undefined,
  options: BrowserContextOptions = {},
): Promise<Visit> {
  const context = await browser.newContext({ baseURL: url, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  const wrong: string[] = [];
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") wrong.push(message.text());
  });
  page.on("pageerror", (error) => void wrong.push(String(error)));
  page.on("dialog", async (dialog) => {
    wrong.push(`dialog ${dialog.message()}`);
    await dialog.dismiss();
  });
  if (token !== undefined) {
    await page.goto("/ui/login");
    await page.fill("#token", token);
    await page.click("#enter");
    await page.waitForURL("**/ui");
  }
  return { page, wrong };
}

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Those of axe's rules that are about colours. */
export const COLOUR_RULES = ["color-contrast", "link-in-text-block"];

/** What keeps people from using the page, by axe. The page's context has to bypass its policy, which lets no script in. */
export async function barriers(page: Page, rules?: readonly string[]): Promise<string[]> {
  if (await page.evaluate("typeof axe === 'undefined'")) await page.evaluate(axe);
  // The report's frame is sealed, from axe too. Describing all that is in order would take half of the time.
  const options = { iframes: false, resultTypes: ["violations"], ...(rules && { runOnly: rules }) };
  const run = `axe.run({ exclude: ["iframe"] }, ${JSON.stringify(options)})`;
  const found = (await page.evaluate(run)) as {
    violations: { id: string; impact: string; nodes: { html: string; failureSummary: string }[] }[];
  };
  return found.violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, nodes }) => `${id}: ${nodes[0]?.html} ${nodes[0]?.failureSummary}`);
}

/** How wide the page is: beyond its window it would have to be scrolled sideways. */
export function widthOf(page: Page): Promise<number> {
  return page.evaluate<number>("document.documentElement.scrollWidth");
}

/** By day or by night, with no colour still on its way to another. */
export async function inColours(page: Page, colorScheme: "light" | "dark"): Promise<void> {
  await page.emulateMedia({ colorScheme });
  await page.evaluate("Promise.all(document.getAnimations().map(({ finished }) => finished))");
}
