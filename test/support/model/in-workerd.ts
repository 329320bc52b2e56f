import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build } from "esbuild";
import { startWorkerd } from "../../../infra/local/workerd.ts";
import { type Model, ModelError, type TurnRequest } from "../../../shared/ports/model.ts";

const ADAPTER = join(import.meta.dirname, "../../../shared/adapters/anthropic.ts");
const WORKER = `import { anthropic } from ${JSON.stringify(ADAPTER)};
export default {
  async fetch(request) {
    const { verb, baseUrl, body } = await request.json();
    try {
      return Response.json({ value: await anthropic({ apiKey: "k", baseUrl })[verb](body, new AbortController().signal) });
    } catch ({ code, message, isFree }) {
      return Response.json({ failure: { code, message, isFree } });
    }
  },
};`;

/** The adapter as it runs in a Worker. Its answers come back as they are. */
export async function inWorkerd(stack: AsyncDisposableStack): Promise<(baseUrl: string) => Model> {
  const folder = await mkdtemp(join(tmpdir(), "pawl-adapter-"));
  stack.defer(() => rm(folder, { recursive: true, force: true }));
  const file = join(folder, "index.js");
  await build({
    stdin: { contents: WORKER, resolveDir: folder, loader: "js" },
    bundle: true,
    format: "esm",
    platform: "browser",
    conditions: ["workerd"],
    external: ["node:*"],
    outfile: file,
    logLevel: "silent",
  });
  const workerd = stack.use(await startWorkerd([{ name: "adapter", file }], { vars: {} }));
  return (baseUrl) => {
    const ask = async (verb: "turn" | "count", body: TurnRequest) => {
      const told = JSON.stringify({ verb, baseUrl, body });
      const response = await fetch(workerd.urls.adapter as string, { method: "POST", body: told });
      const { value, failure } = (await response.json()) as { value?: unknown; failure?: ModelError };
      if (failure) throw new ModelError(failure.code as "model_invalid", failure.message, failure);
      return value as never;
    };
    return { turn: (body) => ask("turn", body), count: (body) => ask("count", body) };
  };
}
