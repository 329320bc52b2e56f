import { html } from "hono/html";
import type { Html } from "./text.ts";

export interface Login {
  /** Why the last try did not do. */
  readonly wrong?: string;
  /** The page that was asked for. */
  readonly next: string;
}

export function loginForm({ wrong, next }: Login): Html {
  return html`<div class="login panel"><h1>Sign in</h1>
<form id="login" method="post" action="/ui/login"><input type="hidden" name="next" value="${next}">
${wrong && html`<p class="wrong" id="wrong" role="alert">${wrong}</p>`}
<label for="token">API token</label>
<input id="token" name="token" type="password" autocomplete="current-password" required autocapitalize="none" spellcheck="false"${
    wrong ? html` aria-invalid="true" aria-describedby="wrong"` : ""
  }>
<button id="enter" class="primary">Sign in</button>
<p class="note">The same tokens as for the API. Make one: <code>pawl token create</code></p>
</form></div>`;
}
