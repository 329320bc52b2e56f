import { isPawlError } from "../errors/errors.ts";
import { placeIn, type SourceTable } from "../values/source-table.ts";

/** What a bundle says of itself as it is loaded; nothing where the sources run as they are. */
export interface Bundle extends SourceTable {
  /** A stack whose first line names the bundle, as this platform does. */
  readonly stack: string;
}

/** The name under which a bundle puts it: infra/build writes this into its last line. */
export const BUNDLE = "pawl.bundle";

const FRAMES = 8;
const STACK_CHARS = 1_000;

/**
 * The first lines of what threw, in terms of the author's sources, and with no path of the machine. Only of what is none
 * of ours: Fatal and Retry say what they mean.
 */
export function stackOf(error: unknown): { stack?: string } {
  if (!(error instanceof Error) || isPawlError(error) || typeof error.stack !== "string") return {};
  const bundle = (globalThis as { [key: symbol]: Bundle | undefined })[Symbol.for(BUNDLE)];
  const stack = readable(error.stack, bundle, HERE);
  return stack === "" ? {} : { stack };
}

interface Frame {
  readonly text: string;
  readonly isOurs: boolean;
}

export function readable(stack: string, bundle: Bundle | undefined, root: string): string {
  const own = bundle && FRAME.exec(bundle.stack.split("\n").find(isFrame) ?? "")?.[2];
  const frames = stack
    .split("\n")
    .filter(isFrame)
    .flatMap((line): Frame[] => {
      const [, name = "", path, row, column] = FRAME.exec(line) ?? [];
      if (path === undefined) return [{ text: line.trim(), isOurs: false }];
      if (path.startsWith("node:")) return [];
      const place = bundle && path === own ? placeIn(bundle, Number(row), Number(column) - 1) : undefined;
      const file = place?.file ?? shortened(path, root);
      const at = place
        ? place.line === undefined
          ? file
          : `${file}:${place.line}`
        : `${file}:${row}:${column}`;
      // A minifier's names say nothing.
      const isNamed = name !== "" && !(place && /^(async |new )*[\w$]{1,2}$/.test(name));
      return [
        { text: isNamed ? `at ${name} (${at})` : `at ${at}`, isOurs: /^(shared|functions)(\/|$)/.test(file) },
      ];
    });
  const theirs = frames.filter(({ isOurs }) => !isOurs);
  const shown = (theirs.length > 0 ? theirs : frames).slice(0, FRAMES);
  return shown
    .map(({ text }) => `    ${text}`)
    .join("\n")
    .slice(0, STACK_CHARS);
}

/** Where the project's sources lie, where they run as they are. */
const HERE = (import.meta.url ?? "").replace(/shared\/runner\/stack\.[jt]s$/, "");

const isFrame = (line: string): boolean => /^\s+at /.test(line);
const FRAME = /^\s+at (?:(.*) \()?([^()]*?):(\d+):(\d+)\)?$/;

/** From the project's root, or from the package on; else its folder and name. */
function shortened(path: string, root: string): string {
  const roots = root.startsWith("file://") ? [root, decodeURI(root.slice("file://".length))] : [];
  const under = roots.find((one) => path.startsWith(one));
  if (under !== undefined) return path.slice(under.length);
  const [, inPackage] = /.*[/\\](node_modules[/\\].*)$/.exec(path) ?? [];
  if (inPackage) return inPackage;
  const parts = path.replace(/^\w+:\/\//, "").split(/[/\\]/);
  return parts.length <= 2 ? path : `…/${parts.slice(-2).join("/")}`;
}
