import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { barriers, launch, visit, widthOf } from "../support/http/browser.ts";
import { type Dashboard, dashboard } from "../support/http/dashboard.ts";
import { testNats } from "../support/servers/stores.ts";

let nats: LocalNats;
let d: Dashboard;
let browser: Browser;
let token: string;

beforeAll(async () => {
  [nats, browser] = await Promise.all([testNats(), launch()]);
  d = await dashboard(nats);
  token = await d.token("ann");
  for (const id of ["bad-1", "bad-2", "bad-3"]) await d.submit("invoices", { how: "fail" }, { id });
  await d.submit("triage", {}, { id: "fine-1", meta: { owner: "ann", labels: { team: "docs" } } });
  for (const id of ["bad-1", "bad-2", "bad-3"]) await d.reaches(id, "failed");
  await d.reaches("fine-1", "completed");
}, 700_000);
afterAll(async () => {
  await browser?.close();
  await d?.[Symbol.asyncDispose]();
  await nats?.stop();
});

test("on a phone a list shows more than ids, all of it in sight", async () => {
  const viewport = { width: 375, height: 700 };
  const { page } = await visit(browser, d.url, token, { viewport, bypassCSP: true });
  for (const path of ["/ui/tasks", "/ui/dead-letters", "/ui", "/ui/agents/invoices"]) {
    await page.goto(path);
    expect(await widthOf(page), path).toBeLessThanOrEqual(375);
    expect(await barriers(page), path).toEqual([]);
  }
  await page.goto("/ui/tasks");
  const row = page.locator("#t-bad-1");
  for (const part of [".badge", "a[href='/ui/agents/invoices']", "time"]) {
    const box = await row.locator(part).boundingBox();
    expect((box?.x ?? 999) + (box?.width ?? 999), part).toBeLessThanOrEqual(375);
  }
  await page.goto("/ui/dead-letters");
  expect((await page.locator("#t-bad-1 .wrap").boundingBox())?.x).toBeLessThan(60);
  await page.context().close();
});

test("a list that is open shows a task that comes, and keeps what was ticked", async () => {
  const { page, wrong } = await visit(browser, d.url, token);
  await page.goto("/ui/dead-letters");
  await page.evaluate("window.marked = true");
  await page.getByLabel("Choose bad-2").check();
  await d.submit("invoices", { how: "fail" }, { id: "bad-4" });
  await page.waitForSelector("#t-bad-4");
  expect(await page.evaluate("window.marked")).toBe(true);
  expect(await page.getByLabel("Choose bad-2").isChecked()).toBe(true);
  expect(await page.getByLabel("Choose bad-4").isChecked()).toBe(false);
  expect(wrong).toEqual([]);
  await page.context().close();
});

test("a link leads to its page after the sign-in; what is ticked there is tried again, after a question", async () => {
  const { page, wrong } = await visit(browser, d.url, undefined);
  await page.goto("/ui/dead-letters?agent=invoices");
  await page.waitForURL("**/ui/login?next=*");
  await page.fill("#token", token);
  await page.click("#enter");
  await page.waitForURL("**/ui/dead-letters?agent=invoices");
  await page.getByLabel("Choose bad-1").check();
  await page.getByLabel("Choose bad-3").check();
  d.stage.isMended = true;
  try {
    await page.getByRole("button", { name: "Try again those chosen…" }).click();
    await page.getByRole("button", { name: "Try again: 2 tasks" }).click();
    await page.getByRole("heading", { name: "2 of 2 started again" }).waitFor();
    await d.reaches("bad-1", "completed");
    await d.reaches("bad-3", "completed");
  } finally {
    d.stage.isMended = false;
  }
  expect((await d.task("bad-2")).state).toBe("failed");
  expect(wrong).toEqual([]);
  await page.context().close();
});

test("over plain HTTP on the local network the sign-in says why it can't be, and forms of other sites stay refused", async () => {
  const lan = d.url.replace("127.0.0.1", "lan.test");
  const { page } = await visit(browser, lan, undefined);
  await page.goto("/ui/tasks/bad-2");
  await page.fill("#token", token);
  await page.click("#enter");
  await page.waitForURL(`${lan}/ui/login/kept?next=%2Fui%2Ftasks%2Fbad-2`);
  expect(await page.textContent("#wrong")).toMatch(
    /valid, but the browser did not keep.*by HTTPS, or as http/,
  );
  // From here the browser says nothing of the site, and of the origin what the page lets it say.
  for (const policy of ["same-origin", "no-referrer", "unsafe-url"]) {
    await page.route("http://evil.test/", (route) =>
      route.fulfill({
        headers: { "referrer-policy": policy },
        contentType: "text/html",
        body: `<form method="post" action="${lan}/ui/login"><input name="token" value="${token}"><button>x</button></form>`,
      }),
    );
    await page.goto("http://evil.test/");
    const answer = page.waitForResponse(`${lan}/ui/login`);
    await page.click("button");
    expect((await answer).status(), policy).toBe(403);
    await page.unrouteAll();
  }
  await page.context().close();
});
