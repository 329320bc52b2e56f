import * as esbuild from "esbuild";

export * from "esbuild";

/**
 * esbuild for deploys that are not about what is in a bundle: what depends on the project (the agent, what is known of all)
 * is bundled, and Pawl's own code and packages, which take a second of a core each time, are left where they are.
 */
export const build = ((options: esbuild.BuildOptions) =>
  esbuild.build({
    ...options,
    minify: false,
    plugins: [...(options.plugins ?? []), leftOut],
  })) as typeof esbuild.build;

const leftOut: esbuild.Plugin = {
  name: "left-out",
  setup: ({ onResolve }) => {
    onResolve({ filter: /^[^./]|\/shared\/|\/wiring\// }, ({ path, kind }) =>
      kind === "entry-point" ? undefined : { path, external: true },
    );
  },
};
