import { basename, dirname, relative, resolve } from "node:path";
import type { OutputFile } from "esbuild";
import { BUNDLE } from "../../shared/runner/stack.ts";
import { type SourceMap, tableOf } from "../../shared/values/source-table.ts";
import { PACKAGE } from "../project.ts";

/**
 * Bundles that can say where in the author's sources something was thrown. No platform does it for them: Workers map
 * stacks for their own logs only, after the fact, and Node would have to be started with a flag. The table comes last, so
 * that it moves nothing; the whole map, with the sources' text, stays beside the bundle.
 */
export function withSources(
  files: readonly OutputFile[],
  agents: string,
  project: string,
): readonly { path: string; contents: Uint8Array }[] {
  const map = files.find(({ path }) => path.endsWith(".map"));
  return files.map(({ path, contents, text }) => {
    if (path.endsWith(".map") || !map) return { path, contents };
    const nameOf = (source: string) => sourceName(source, dirname(path), agents, project);
    const table = tableOf(JSON.parse(map.text) as SourceMap, nameOf, isAuthors);
    const last = `globalThis[Symbol.for(${JSON.stringify(BUNDLE)})]=Object.assign(${JSON.stringify(table)},{stack:Error().stack});\n`;
    const at = text.lastIndexOf("//# sourceMappingURL=");
    return { path, contents: new TextEncoder().encode(text.slice(0, at) + last + text.slice(at)) };
  });
}

/** As seen from the project's folder; of agents that lie elsewhere, from the folder above theirs. No machine's paths. */
function sourceName(source: string, folder: string, agents: string, project: string): string {
  if (/^[\w-]+:/.test(source)) return source;
  const path = resolve(folder, source);
  // What was compiled is named by what it was compiled from, which an installed package only remembers.
  const ours = relative(PACKAGE, path);
  if (/^(shared|functions)\//.test(ours)) return dirname(ours);
  const [, inPackage] = /.*\/(node_modules\/(?:@[^/]+\/)?[^/]+)/.exec(path) ?? [];
  if (inPackage) return inPackage;
  const fromProject = relative(project, path);
  if (!fromProject.startsWith("..")) return fromProject;
  const fromAgents = relative(dirname(resolve(agents)), path);
  return fromAgents.startsWith("..") ? `…/${basename(dirname(path))}/${basename(path)}` : fromAgents;
}

/** Of Pawl's own code the folder's name is enough, and of packages the package's. */
const isAuthors = (file: string): boolean => !/^(shared|functions|node_modules)(\/|$)|^\w+:/.test(file);
