import { mkdir, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { findChromium } from "../../infra/local/find-chromium.ts";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { ROOT } from "../../infra/project.ts";
import { signal } from "../../shared/dispatch/operate.ts";
import { barriers, COLOUR_RULES, inColours, launch, visit, widthOf } from "../support/http/browser.ts";
import { type Dashboard, dashboard, furnish } from "../support/http/dashboard.ts";
import { testNats } from "../support/servers/stores.ts";

let nats: LocalNats;
let d: Dashboard;
let browser: Browser;
let token: string;

beforeAll(async () => {
  [nats, browser] = await Promise.all([testNats(), launch()]);
  d = await dashboard(nats);
  token = await d.token("ann");
  await furnish(d);
  await d.submit("release-notes", { how: "hostile" }, { id: "hostile" });
  await d.reaches("hostile", "waiting");
}, 700_000);
afterAll(async () => {
  await browser?.close();
  await d?.[Symbol.asyncDispose]();
  await nats?.stop();
});

const PAGES = [
  "/ui",
  "/ui/tasks",
  "/ui/dead-letters",
  "/ui/tasks/notes-4-2",
  "/ui/tasks/transfer-1041",
  "/ui/tasks/invoice-1038",
  "/ui/tasks/hostile",
  "/ui/tasks/issue-2206",
  "/ui/reports",
  "/ui/reports/2026-W46",
];
/** Reports by themselves, as they are mailed: to look at it, and broken. */
const DOCUMENTS = ["/ui/reports/2026-W44/document", "/ui/reports/2026-W45/document"];

/** Nobody loads the page again by hand: it is still the one that was marked. */
async function untilLive(page: Page, state: string): Promise<void> {
  await page.waitForSelector(`h1 .badge.${state}`);
  expect(await page.evaluate("window.marked")).toBe(true);
}

test("a Chromium that is named and is none is said to be none", async () => {
  await expect(findChromium({ PAWL_CHROMIUM: "/nowhere" })).rejects.toThrow(
    /PAWL_CHROMIUM=.nowhere can't be run/,
  );
});

test("log in, approve what waits, and see it completed without loading the page again", async () => {
  await d.submit("release-notes", { how: "approve" }, { id: "live-1" });
  await d.reaches("live-1", "waiting");
  const { page, wrong } = await visit(browser, d.url, token);
  await page.click("#asks a[href$='/live-1']");
  await page.getByRole("button", { name: "Approve" }).click();
  await page.getByText("You approved it.").waitFor();
  await page.evaluate("window.marked = true");
  await untilLive(page, "completed");
  await page.getByRole("region", { name: "Result" }).getByText("https://example.org/notes/4.2").waitFor();
  expect(wrong).toEqual([]);
  await page.context().close();
});

test("a page that is open shows what others do: the state, in words for those who don't see it, and the buttons", async () => {
  await d.submit("release-notes", { how: "approve" }, { id: "live-2" });
  await d.reaches("live-2", "waiting");
  const { page, wrong } = await visit(browser, d.url, token);
  await page.goto("/ui/tasks/live-2");
  await page.evaluate("window.marked = true");
  // What was typed and unfolded stays while the page changes under it.
  await page.getByText("What it returned").first().click();
  const note = page.getByLabel("Note (optional)");
  await note.fill("not yet");
  await signal(d.deps, "live-2", "nudge", "a word in between");
  await page.getByText("a word in between").waitFor();
  expect(await note.inputValue()).toBe("not yet");
  expect(await page.evaluate("document.activeElement.name")).toBe("note");
  const other = await visit(browser, d.url, token);
  await other.page.goto("/ui/tasks/live-2");
  await other.page.getByRole("button", { name: "Approve" }).click();
  await untilLive(page, "completed");
  await expect.poll(() => page.textContent("#news")).toBe("Task live-2 is completed");
  expect(await page.title()).toBe("live-2 is completed · Pawl");
  expect(await page.getByRole("button", { name: "Approve" }).count()).toBe(0);
  expect(await page.locator(".timeline details[open]").count()).toBe(1);
  expect([...wrong, ...other.wrong]).toEqual([]);
  await page.context().close();
  await other.page.context().close();
});

test("redrive a dead letter and see it completed live", async () => {
  await d.submit("invoices", { how: "fail" }, { id: "live-3" });
  await d.reaches("live-3", "failed");
  const { page, wrong } = await visit(browser, d.url, token);
  await page.goto("/ui/dead-letters");
  await page.click("a[href$='/live-3']");
  await page.getByText("550 no such user").first().waitFor();
  d.stage.isMended = true;
  try {
    await page.getByRole("button", { name: "Try again" }).click();
    await page.getByText("You started it again.").waitFor();
    await page.evaluate("window.marked = true");
    await untilLive(page, "completed");
  } finally {
    d.stage.isMended = false;
  }
  expect(await page.getByRole("region", { name: "Result" }).textContent()).toBe("sent");
  expect(await page.getByText("redrive", { exact: true }).count()).toBe(1);
  expect(wrong).toEqual([]);
  await page.context().close();
});

test("the overview changes by itself, and the focus stays where it was", async () => {
  const { page, wrong } = await visit(browser, d.url, token);
  await page.evaluate("window.marked = true");
  const link = page.locator("#run-link-issue-2207");
  await link.focus();
  await d.submit("release-notes", { how: "approve" }, { id: "live-4" });
  await page.waitForSelector("#asks a[href$='/live-4']");
  expect(await page.evaluate("window.marked")).toBe(true);
  expect(await page.evaluate("document.activeElement.id")).toBe("run-link-issue-2207");
  await expect.poll(() => page.textContent("#news")).toMatch(/^\d+ waiting, 1 in doubt, \d+ failed$/);
  expect(wrong).toEqual([]);
  await page.context().close();
});

test("nothing that a model wrote runs, looks like ours, or leads anywhere", async () => {
  const { page, wrong } = await visit(browser, d.url, token);
  const requested: string[] = [];
  page.on("request", (request) => void requested.push(request.url()));
  for (const path of ["/ui/tasks/hostile", "/ui", "/ui/tasks", "/ui/reports"]) {
    await page.goto(path);
    for (const fold of await page.locator(".timeline summary").all()) await fold.click();
    await page.mouse.move(300, 300);
    expect(await page.evaluate("typeof window.pwned"), path).toBe("undefined");
    expect(await page.locator("main").isVisible()).toBe(true);
    expect(
      await page.locator("main svg:not(.bars), main style, main script, main a[href^=javascript]").count(),
    ).toBe(0);
  }
  await page.goto("/ui/tasks/hostile");
  await page.getByText("<script>window.pwned=1</script>").first().waitFor();
  expect(wrong).toEqual([]);
  expect(
    requested.filter((url) => !url.startsWith(`${d.url}/ui`) && !url.startsWith(`${d.url}/assets/`)),
  ).toEqual([]);
  await page.context().close();
});

test("a stored report is shown, and can do nothing: no script, no form, no word to the page around it", async () => {
  const { page, wrong } = await visit(browser, d.url, token);
  await page.goto("/ui/reports/2026-W46");
  const frame = page.frameLocator("iframe");
  await frame.getByText("All 1,204 sequences are explained.").waitFor();
  await frame.getByRole("button").click();
  await page.goto("/ui/reports/2026-W46/document");
  await page.getByRole("button").click();
  expect(page.url()).toMatch(/document$/);
  expect(await page.evaluate("typeof window.pwned")).toBe("undefined");
  // The browser says what it refused, and that is all it says.
  expect(wrong.filter((one) => !/sandboxed|Content Security Policy/.test(one))).toEqual([]);
  await page.goto("/ui");
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  await page.context().close();
});

test("the list of reports says in words which one needs somebody, and a report says first what to do", async () => {
  const { page, wrong } = await visit(browser, d.url, token);
  await page.goto("/ui/reports");
  const badges = await page.locator("#reports .badge").allTextContents();
  expect(badges).toEqual(["in order", "broken", "to do", "in order"]);
  await page.goto(DOCUMENTS[1] as string);
  const headings = await page.getByRole("heading").allTextContents();
  expect(headings.slice(0, 6)).toEqual([
    "Pawl, 2026-W45",
    "This week",
    "What to do",
    "Findings",
    "Broken: unexplained, 2 sequences",
    "To do: in doubt, 1 task",
  ]);
  expect(await page.locator(".todo li").first().textContent()).toMatch(
    /^Broken: unexplained, 2 sequences \(find/,
  );
  expect(await page.evaluate("typeof window.pwned")).toBe("undefined");
  expect(await page.locator("img, script, a").count()).toBe(0);
  // A table that is wider than the page is reached by keyboard.
  await page.keyboard.press("Tab");
  expect(await page.evaluate("document.activeElement.getAttribute('aria-label')")).toBe(headings[4]);
  expect(wrong).toEqual([]);
  await page.context().close();
});

test("by keyboard alone: sign in, skip to the content, reach the button, press it", async () => {
  await d.submit("release-notes", { how: "approve" }, { id: "keys-1" });
  await d.reaches("keys-1", "waiting");
  const { page, wrong } = await visit(browser, d.url, undefined);
  const { keyboard } = page;
  const focused = () =>
    page.evaluate<string>("document.activeElement.id || document.activeElement.textContent");
  const tabTo = async (what: RegExp) => {
    for (let presses = 0; presses < 60; presses++) {
      await keyboard.press("Tab");
      if (what.test(await focused())) return;
    }
    throw new Error(`never reached ${what}`);
  };
  await page.goto("/ui/tasks/keys-1");
  expect(page.url()).toMatch(/login\?next=/);
  await tabTo(/^token$/);
  await keyboard.type(token);
  await keyboard.press("Enter");
  await page.waitForURL(/\/ui\/tasks\/keys-1$/);
  await tabTo(/^Skip to content$/);
  expect(await page.locator(".skip").boundingBox()).toMatchObject({ x: expect.closeTo(8, 0) });
  await keyboard.press("Enter");
  await tabTo(/^approve-/);
  const outline = await page.evaluate<string>("getComputedStyle(document.activeElement).outlineStyle");
  expect(outline).toBe("solid");
  await keyboard.press("Enter");
  await page.waitForSelector("h1 .badge.completed");
  expect(wrong).toEqual([]);
  await page.context().close();
});

test("without any script everything can be done, by loading pages", async () => {
  await d.submit("release-notes", { how: "approve" }, { id: "plain-1" });
  await d.reaches("plain-1", "waiting");
  const { page } = await visit(browser, d.url, token, { javaScriptEnabled: false });
  await page.goto("/ui/tasks/plain-1");
  await page.getByLabel("Note (optional)").fill("by hand");
  await page.getByRole("button", { name: "Approve" }).click();
  await d.reaches("plain-1", "completed");
  expect((await d.task("plain-1")).signals).toMatchObject([{ value: { note: "by hand", by: "ann" } }]);
  await page.goto("/ui/tasks/issue-2208");
  await page.getByText("Cancel this task").click();
  await page.getByRole("button", { name: "Cancel the task" }).click();
  await d.reaches("issue-2208", "cancelled");
  await page.getByRole("button", { name: "Sign out" }).click();
  expect(page.url()).toMatch(/login$/);
  await page.goto("/ui");
  expect(page.url()).toMatch(/login$/);
  await page.context().close();
});

test.each([
  ["wide", { width: 1_100, height: 800 }],
  ["phone", { width: 360, height: 740 }],
])("every page fits its window and has no barriers, by day and by night: %s", async (_, viewport) => {
  const { page } = await visit(browser, d.url, token, { viewport, bypassCSP: true });
  const grounds = new Set<string>();
  const look = async (path: string) => {
    // Night changes nothing but colours, which is all that is looked at again.
    for (const [colours, rules] of [["light"], ["dark", COLOUR_RULES]] as const) {
      await inColours(page, colours);
      if (!rules) await page.goto(path);
      for (const fold of rules ? [] : await page.locator("main summary").all()) await fold.click();
      expect(await widthOf(page), path).toBeLessThanOrEqual(viewport.width);
      expect(await barriers(page, rules), path).toEqual([]);
      grounds.add(await page.evaluate("getComputedStyle(document.body).backgroundColor"));
    }
  };
  for (const path of [...DOCUMENTS, ...PAGES]) await look(path);
  await page.context().clearCookies();
  grounds.clear();
  await look("/ui/login");
  expect([...grounds]).toEqual(["rgb(246, 247, 247)", "rgb(16, 22, 24)"]);
  await page.context().close();
});

test.runIf(process.env.UPDATE_SCREENSHOTS)("the pictures in docs/images", async () => {
  const folder = join(ROOT, "docs", "images");
  await mkdir(folder, { recursive: true });
  await using nice = await dashboard(nats);
  await furnish(nice);
  const { page } = await visit(browser, nice.url, await nice.token("ann"));
  for (const [name, path, height] of [
    ["overview", "/ui", 900],
    ["task", "/ui/tasks/notes-4-2", 1_000],
    ["reports", "/ui/reports", 460],
  ] as const) {
    await page.setViewportSize({ width: 1_000, height });
    await page.goto(path);
    const file = join(folder, `dashboard-${name}.png`);
    await page.screenshot({ path: file });
    expect((await stat(file)).size).toBeLessThan(150 * 1024);
  }
  await page.context().close();
});
