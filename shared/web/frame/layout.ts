import { html } from "hono/html";
import { seesAll } from "../authorize.ts";
import type { Request } from "../context.ts";
import type { Token } from "../tokens.ts";
import { assetPath } from "./assets.ts";
import { formKey, sessionToken } from "./session.ts";
import { type Html, visible } from "./text.ts";

export type Status = 200 | 401 | 403 | 404 | 409 | 413 | 422 | 429 | 500 | 503;

export interface Page {
  readonly title: string;
  readonly main: Html;
  /** The entry of the menu that it belongs to. */
  readonly at?: string;
  /** The address of the event stream that says when the page has changed. */
  readonly live?: string | undefined;
  /** For a page made from cached data: in how many milliseconds it can be made from fresh data. */
  readonly again?: number | undefined;
  /** What screen readers announce, whenever it differs from before. */
  readonly says?: string | undefined;
  /** What has just been done. */
  readonly notice?: string | undefined;
  readonly status?: Status;
}

const MENU = [
  ["/ui", "Overview"],
  ["/ui/tasks", "Tasks"],
  ["/ui/dead-letters", "Dead letters"],
  ["/ui/reports", "Reports"],
] as const;

/** Reports are about everybody's tasks. */
export const seesReports = (token: Token): boolean => seesAll(token) && !token.agents;

export async function renderPage(c: Request, page: Page): Promise<Response> {
  const { title, main, live, again, says, notice, status = 200 } = page;
  // None before the login.
  const token: Token | undefined = c.var.token;
  const key = await formKey(sessionToken(c) ?? "");
  const menu = token && MENU.filter(([path]) => path !== "/ui/reports" || seesReports(token));
  return c.html(
    html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title} · Pawl</title>
<link rel="icon" href="${assetPath("pawl.svg")}">
<link rel="stylesheet" href="${assetPath("pawl.css")}">
<script src="${assetPath("pawl.js")}" defer></script>
</head>
<body>
<a class="skip" href="#main">Skip to content</a>
<header><div class="bar">
<a class="brand" href="/ui"><img src="${assetPath("pawl.svg")}" alt="" width="22" height="22">Pawl</a>
${menu && html`<nav aria-label="Main"><ul>${menu.map(([path, name]) => item(path, name, page.at))}</ul></nav>`}
${
  token &&
  html`<form class="leave" method="post" action="/ui/logout"><input type="hidden" name="key" value="${key}">
<span class="who">${token.owner}</span><button id="leave" class="quiet">Sign out</button></form>`
}
</div></header>
<p id="news" class="hidden" role="status" aria-live="polite"></p>
${notice && html`<p class="notice" role="status">${notice}</p>`}
<main id="main" tabindex="-1" data-live="${live ?? ""}" data-again="${again ?? ""}" data-says="${says ?? ""}">${main}</main>
${token && html`<footer><p id="zone">Times are UTC.</p></footer>`}
</body>
</html>`,
    status,
  );
}

function item(path: string, name: string, at: string | undefined): Html {
  return html`<li><a href="${path}"${path === at ? html` aria-current="page"` : ""}>${name}</a></li>`;
}

export function renderError(
  c: Request,
  status: Status,
  title: string,
  detail: string,
  back?: string,
): Promise<Response> {
  const where = html`<a href="${back ?? "/ui"}">Back to the ${back ? "task" : "overview"}</a>`;
  const main = html`<h1>${title}</h1><p class="wrong">${visible(detail)}</p><p>${where}</p>`;
  return renderPage(c, { title, main, status });
}
