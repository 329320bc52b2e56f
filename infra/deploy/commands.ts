import { spawn } from "node:child_process";
import { PawlError } from "../../shared/errors/errors.ts";

export interface CommandResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Programs that a deploy runs. In a dry run those that would change something are only written down. */
export interface Commands {
  readonly isDry: boolean;
  /** All that would change, or changed, something. */
  readonly made: readonly (readonly string[])[];
  /** Looks, and changes nothing. */
  ask(argv: readonly string[]): Promise<CommandResult>;
  /** Changes something. Throws with its output when it fails. `dry`: what to run instead in a dry run. */
  make(argv: readonly string[], dry?: readonly string[]): Promise<CommandResult>;
}

export function commandsOf(dryRun: boolean, tell: (line: string) => void, env: NodeJS.ProcessEnv): Commands {
  const made: (readonly string[])[] = [];
  return {
    isDry: dryRun,
    made,
    ask: (argv) => run(argv, env),
    make: async (argv, dry) => {
      made.push(argv);
      tell(`${dryRun ? "would run" : "runs"}: ${shown(argv)}`);
      const instead = dryRun ? dry : argv;
      if (!instead) return { code: 0, stdout: "", stderr: "" };
      const result = await run(instead, env);
      if (result.code === 0) {
        if (dryRun) for (const line of result.stdout.split("\n").filter(Boolean)) tell(`  | ${line}`);
        return result;
      }
      const output = `${result.stdout}\n${result.stderr}`.trim().split("\n").slice(-12).join("\n");
      throw new PawlError("deploy_failed", `${shown(instead)} ended with ${result.code}:\n${output}`);
    },
  };
}

/** As one would type it. */
export function shown(argv: readonly string[]): string {
  return argv
    .map((one) => (/^[\w@%+=:,./-]+$/.test(one) ? one : `'${one.replaceAll("'", "'\\''")}'`))
    .join(" ");
}

function run(argv: readonly string[], env: NodeJS.ProcessEnv): Promise<CommandResult> {
  const [command = "", ...args] = argv;
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { env, stdio: ["ignore", "pipe", "pipe"] });
    const output = { stdout: "", stderr: "" };
    child.stdout.on("data", (chunk: Buffer) => {
      output.stdout += chunk.toString();
    });
    child.stderr.on("data", (chunk: Buffer) => {
      output.stderr += chunk.toString();
    });
    child.on("error", (error: NodeJS.ErrnoException) =>
      reject(
        error.code === "ENOENT"
          ? new PawlError(
              "deploy_incomplete",
              `${command} is not installed, or not on the PATH${hint(command)}`,
            )
          : error,
      ),
    );
    child.on("close", (code) => resolve({ code: code ?? -1, ...output }));
  });
}

function hint(command: string): string {
  if (command === "gcloud") return ". Install it: https://cloud.google.com/sdk/docs/install";
  return command === "wrangler" ? ". Run: npm install --save-dev wrangler" : "";
}
