import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { visible } from "../../shared/web/frame/text.ts";
import { barriers, launch, visit, widthOf } from "../support/http/browser.ts";
import { type Dashboard, dashboard, HOSTILE } from "../support/http/dashboard.ts";
import { testNats } from "../support/servers/stores.ts";

let nats: LocalNats;
let d: Dashboard;
let browser: Browser;
let token: string;

beforeAll(async () => {
  [nats, browser] = await Promise.all([testNats(), launch()]);
  d = await dashboard(nats);
  token = await d.token("ann");
  await d.submit("release-notes", { how: "approve" }, { id: "notes" });
  await d.submit("invoices", { how: "fail" }, { id: "bill" });
  await d.submit("release-notes", { how: "hostile" }, { id: "hostile" });
  for (const id of ["notes", "hostile"]) await d.reaches(id, "waiting");
  await d.reaches("bill", "failed");
}, 700_000);
afterAll(async () => {
  await browser?.close();
  await d?.[Symbol.asyncDispose]();
  await nats?.stop();
});

test("times are of the viewer's zone, with UTC on hover, also after the page has changed", async () => {
  const { page, wrong } = await visit(browser, d.url, token, { timezoneId: "Asia/Kathmandu" });
  await page.goto("/ui/tasks/notes");
  const shown = async () => {
    const times = page.locator("time[data-as]");
    for (let i = 0; i < (await times.count()); i++) {
      const one = times.nth(i);
      const at = Date.parse((await one.getAttribute("datetime")) as string);
      // Kathmandu is 5:45 ahead, all year.
      const local = new Date(at + 20_700_000).toISOString();
      const clock = local.slice(11, (await one.getAttribute("data-as")) === "s" ? 19 : 23);
      expect(await one.textContent()).toContain(clock);
      expect(await one.getAttribute("title")).toBe(
        `${new Date(at).toISOString().slice(0, 23).replace("T", " ")} UTC`,
      );
    }
    return times.count();
  };
  const before = await shown();
  expect(before).toBeGreaterThan(5);
  expect(await page.textContent("#zone")).toMatch(/Kath?mandu/);
  await page.evaluate("window.marked = true");
  await page.getByRole("button", { name: "Approve" }).click();
  await page.waitForSelector("h1 .badge.completed");
  expect(await shown()).toBeGreaterThan(before);
  expect(wrong).toEqual([]);
  await page.context().close();
});

test("what goes by days and hours of UTC says so beside times of the viewer's zone", async () => {
  await d.report({ name: "2026-W46", from: 0, to: 1, verdict: "All are explained", ok: true });
  const { page } = await visit(browser, d.url, token, { timezoneId: "Asia/Kathmandu" });
  for (const [path, says] of [
    ["/ui/agents/invoices?span=1h", "Over the last hour, in UTC"],
    ["/ui/agents/invoices?span=7d", "Over the last 7 days, in UTC"],
    ["/ui", "changed today (UTC)"],
    ["/ui/reports", "From (UTC)"],
    ["/ui/reports", "To (UTC)"],
  ] as const) {
    await page.goto(path);
    expect(await page.textContent("main"), path).toContain(says);
    expect(await page.textContent("#zone"), path).toMatch(
      /^Times are local \(Asia\/Kath?mandu\) unless they say UTC/,
    );
  }
  await page.goto("/ui/agents/invoices?span=1h");
  const ticks = await page.locator("svg text.tick").allTextContents();
  const clocks = ticks.filter((text) => /^\d\d:\d\d$/.test(text));
  const hours = new Set(
    [Date.now() - 3_600_000, Date.now()].map((at) => new Date(at).toISOString().slice(11, 13)),
  );
  expect(clocks.length).toBeGreaterThan(0);
  for (const clock of clocks) expect([...hours]).toContain(clock.slice(0, 2));
  await page.context().close();
});

test("a button copies by keyboard, says so in words, and is not there without script", async () => {
  const permissions = ["clipboard-read", "clipboard-write"];
  const { page, wrong } = await visit(browser, d.url, token, { permissions });
  await page.goto("/ui/tasks/bill");
  for (const [what, text] of [
    ["the id", /^bill$/],
    ["the error", /550 no such user/],
    ["the input", /"how": "fail"/],
  ] as const) {
    const button = page.getByRole("button", { name: `Copy ${what}` });
    await button.focus();
    await page.keyboard.press("Enter");
    await expect.poll(() => page.textContent("#news")).toBe(`Copied ${what}`);
    expect(await page.evaluate("navigator.clipboard.readText()")).toMatch(text);
  }
  // Where a browser has no clipboard, as over plain HTTP, the old way does it.
  await page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })");
  await page.getByRole("button", { name: "Copy the id" }).click();
  await expect.poll(() => page.textContent("#news")).toBe("Copied the id");
  expect(wrong).toEqual([]);
  await page.context().close();
  const plain = await visit(browser, d.url, token, { javaScriptEnabled: false });
  await plain.page.goto("/ui/tasks/bill");
  expect(await plain.page.locator(".copy:visible").count()).toBe(0);
  expect(await plain.page.textContent("#zone")).toBe("Times are UTC.");
  await plain.page.context().close();
});

test.each([
  ["wide", 1_100, "light"],
  ["phone", 360, "dark"],
] as const)(
  "where the time went is words and bars, fits its window, and has no barriers: %s",
  async (name, width, colorScheme) => {
    const { page } = await visit(browser, d.url, token, {
      viewport: { width, height: 800 },
      colorScheme,
      bypassCSP: true,
    });
    for (const id of ["notes", "bill", "hostile"]) {
      await page.goto(`/ui/tasks/${id}`);
      for (const fold of await page.locator("main summary").all()) await fold.click();
      const rows = page.locator(".waterfall li");
      expect(await rows.count()).toBeGreaterThan(1);
      expect(await page.locator(".bars rect").count()).toBeGreaterThanOrEqual(await rows.count());
      expect(await rows.first().textContent()).toMatch(/run fence 1.*\d+ (ms|s)/s);
      // A step of no length is a mark within its run.
      const lengthOf = async (kind: string) =>
        (await page.locator(`.waterfall .${kind} .length`).first().boundingBox())?.width ?? 0;
      expect(await lengthOf("step")).toBeGreaterThan(0);
      expect(await lengthOf("step")).toBeLessThan((await lengthOf("run")) / 2);
      expect(await page.evaluate("typeof window.pwned")).toBe("undefined");
      expect(await widthOf(page)).toBeLessThanOrEqual(width);
      expect(await barriers(page)).toEqual([]);
      if (process.env.SHOTS)
        await page.screenshot({ path: `${process.env.SHOTS}/${id}-${name}.png`, fullPage: true });
    }
    await page.context().close();
  },
);

test("what a model says is read while it says it, as text and nothing else, until it is stored", async () => {
  d.stage.said = "first ";
  await d.submit("release-notes", { how: "aloud" }, { id: "aloud" });
  await d.reaches("aloud", "running");
  const { page, wrong } = await visit(browser, d.url, token, { bypassCSP: true });
  await page.goto("/ui/tasks/aloud");
  await page.evaluate("window.marked = true");
  const words = page.getByRole("region", { name: "What speak/turn 1#1 says, under fence 1" });
  await words.getByText("first").waitFor();
  d.stage.said += HOSTILE;
  await words.getByText("window.pwned=6").waitFor();
  // As a stored turn is: what can't be seen is spelt out.
  expect(await words.textContent()).toBe(visible(`first ${HOSTILE}`));
  expect(await words.locator("*").count()).toBe(0);
  expect(await barriers(page)).toEqual([]);
  d.stage.spoken.resolve();
  await page.waitForSelector("h1 .badge.completed");
  expect(await page.evaluate("[window.marked, window.pwned]")).toEqual([true, undefined]);
  expect(await words.count()).toBe(0);
  await page.getByRole("region", { name: "Result" }).getByText("window.pwned=6").waitFor();
  expect(wrong).toEqual([]);
  await page.context().close();
});
