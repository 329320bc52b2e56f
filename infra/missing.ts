import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { PawlError } from "../shared/errors/errors.ts";
import { PACKAGE, projectFolder } from "./project.ts";

/**
 * Programs of 150 MB that only development needs. They are no peers of Pawl's package, since npm would install them in
 * production, too, where a project has them for development.
 */
const TOOLS = ["workerd", "wrangler"] as const;

/** A tool that the project has brought: found beside Pawl, or from the project's folder where packages see only their own. */
export function required(tool: (typeof TOOLS)[number]): unknown {
  try {
    return createRequire(import.meta.url)(tool);
  } catch (error) {
    if ((error as { code?: unknown }).code !== "MODULE_NOT_FOUND") throw error;
    return createRequire(join(projectFolder(), "package.json"))(tool);
  }
}

/**
 * Of an error that a package is not there: the same for people, if it is one that Pawl leaves to the project to bring, with
 * the version that Pawl was tested with.
 */
export function missingPackage(error: unknown): PawlError | undefined {
  const { code, message = "" } = error as { code?: unknown; message?: string };
  if (code !== "ERR_MODULE_NOT_FOUND" && code !== "MODULE_NOT_FOUND") return undefined;
  const [, name = ""] = /(?:package|module) '((?:@[\w-]+\/)?[\w-]+)/.exec(message) ?? [];
  const version = testedVersions()[name];
  if (version === undefined) return undefined;
  const [dev, instead] = name.startsWith("@google-cloud/")
    ? ["", ". Or set PAWL_STORE=firestore-rest: the same documents, with no package"]
    : ["--save-dev ", ""];
  return new PawlError(
    "setting_invalid",
    `This needs ${name}, which is not installed. Run: npm install ${dev}${name}@${version}${instead}`,
    { cause: error },
  );
}

/** Of what Pawl's package does not bring along, by name. */
export function testedVersions(): Readonly<Record<string, string>> {
  const { peerDependencies, devDependencies } = JSON.parse(
    readFileSync(join(PACKAGE, "package.json"), "utf8"),
  ) as Record<"peerDependencies" | "devDependencies", Record<string, string>>;
  return Object.fromEntries(
    [...Object.keys(peerDependencies), ...TOOLS].map((name) => [name, devDependencies[name] as string]),
  );
}
