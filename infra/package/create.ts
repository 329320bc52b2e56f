/** Puts what `create-pawl` consists of into one file: `npm pack` runs it, in create/. */
import { chmod } from "node:fs/promises";
import { join } from "node:path";
import { build } from "esbuild";
import { ROOT } from "../project.ts";

const outfile = join(ROOT, "create/create-pawl.js");
await build({
  entryPoints: [join(ROOT, "infra/init/create.ts")],
  outfile,
  bundle: true,
  format: "esm",
  platform: "node",
  target: "node20",
  minifySyntax: true,
  banner: { js: "#!/usr/bin/env node" },
  logLevel: "warning",
});
await chmod(outfile, 0o755);
