import type { Hono } from "hono";
import type { Env } from "../context.ts";
import { securityHeaders } from "./headers.ts";
import { local } from "./local.ts";
import { script } from "./script.ts";
import { style } from "./style.ts";

/** The icon: a pawl on the tooth of a ratchet. */
const icon = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24"><rect width="24" height="24" rx="6" fill="#0f766e"/><path d="M5 18h3v-4h4v-4h4V6h3" fill="none" stroke="#fff" stroke-width="2" stroke-linejoin="round"/><path d="M6 6l6 2-2 4z" fill="#fff"/></svg>`;

const assets: Readonly<Record<string, { readonly type: string; readonly text: string }>> = {
  "pawl.css": { type: "text/css", text: style },
  "pawl.js": { type: "text/javascript", text: local + script },
  "pawl.svg": { type: "image/svg+xml", text: icon },
};

/** Browsers cache assets, so an asset that changes gets another address. */
export function assetPath(name: string): string {
  const { text = "" } = assets[name] ?? {};
  let hash = 0;
  for (let i = 0; i < text.length; i++) hash = (Math.imul(hash, 31) + text.charCodeAt(i)) >>> 0;
  return `/assets/${name}?v=${hash.toString(36)}`;
}

export function addAssets(app: Hono<Env>): void {
  for (const [name, { type, text }] of Object.entries(assets))
    app.get(`/assets/${name}`, (c) => {
      securityHeaders(c);
      c.header("cache-control", "public, max-age=86400");
      c.header("content-type", `${type}; charset=utf-8`);
      return c.body(text);
    });
}
