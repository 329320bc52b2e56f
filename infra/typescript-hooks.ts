/** How a Node that can't read TypeScript loads it: see typescript.ts. Runs in a thread of Node's own. */
import { readFile } from "node:fs/promises";
import type { LoadHook } from "node:module";
import { fileURLToPath } from "node:url";
import { transform } from "esbuild";

export const load: LoadHook = async (url, context, next) => {
  if (!/^file:.*\.ts$/.test(url) || url.includes("/node_modules/")) return next(url, context);
  const file = fileURLToPath(url);
  const { code } = await transform(await readFile(file, "utf8"), {
    loader: "ts",
    format: "esm",
    target: "node20",
    sourcefile: file,
    sourcemap: "inline",
    // As Node itself would do it: an import that is written is an import.
    tsconfigRaw: { compilerOptions: { verbatimModuleSyntax: true } },
  });
  return { format: "module", source: code, shortCircuit: true };
};
