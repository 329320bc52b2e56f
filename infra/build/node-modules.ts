import { builtinModules } from "node:module";
import type { Plugin } from "esbuild";

const NAMES = builtinModules.filter((name) => !name.startsWith("_")).join("|");
/** One of Node's own, by either name. */
export const NODE_MODULE = new RegExp(`^(node:)?(${NAMES})$`);

/**
 * Packages ask for Node's own modules by their bare names, and those in CommonJS by `require`. workerd has them as
 * imports of node:… only.
 */
export const nodeModules: Plugin = {
  name: "node-modules",
  setup: ({ onResolve, onLoad }) => {
    onResolve({ filter: NODE_MODULE }, ({ path, kind }) => {
      const name = path.startsWith("node:") ? path : `node:${path}`;
      return kind === "require-call" ? { path: name, namespace: "required" } : { path: name, external: true };
    });
    onLoad({ filter: /^node:/, namespace: "required" }, ({ path }) => ({
      contents: `import whole from ${JSON.stringify(path)}; module.exports = whole;`,
    }));
  },
};
