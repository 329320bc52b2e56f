import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { Guarded } from "./guards.ts";

const at = (file: string) => fileURLToPath(new URL(file, import.meta.url));

export interface Hunted extends Guarded {
  readonly exitCode: number | null;
  readonly broken: readonly { readonly promise: string; readonly detail: string }[];
  /** It failed as it has to: exit code 1, and that promise named. */
  readonly isMissed: boolean;
  readonly why?: string;
}

/** `patience`: where a task never ends for want of its guard, it is waited for so long. */
export async function hunt(guarded: Guarded, env: NodeJS.ProcessEnv = {}, patience = "15s"): Promise<Hunted> {
  for (let left = guarded.tries ?? 1; ; left--) {
    const hunted = await once(guarded, env, patience);
    if (hunted.isMissed || left <= 1) return hunted;
  }
}

/** The same command that an operator gives, on code that lacks one guard. */
async function once(guarded: Guarded, env: NodeJS.ProcessEnv, patience: string): Promise<Hunted> {
  const { drill, mutant, breaks } = guarded;
  const args = [at("../../infra/cli/main.ts"), "drill", drill, "--json", "--patience", patience];
  const child = spawn(process.execPath, args, {
    env: {
      ...process.env,
      ...env,
      NODE_OPTIONS: `--import=${new URL("mutate.ts", import.meta.url).href}`,
      DRILL_MUTANT: mutant,
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let said = "";
  let errors = "";
  child.stdout.on("data", (chunk: Buffer) => {
    said += chunk.toString();
  });
  child.stderr.on("data", (chunk: Buffer) => {
    errors += chunk.toString();
  });
  const exitCode = await new Promise<number | null>((resolve) => child.on("close", resolve));
  const [first = "{}"] = said.split("\n");
  const result = JSON.parse(first) as {
    judgement?: { broken: Hunted["broken"] };
    why?: string;
    fate?: string;
  };
  const broken = result.judgement?.broken ?? [];
  const isMissed = exitCode === 1 && broken.some(({ promise }) => promise === breaks);
  const why = isMissed ? undefined : [result.fate, result.why, errors.slice(-500)].filter(Boolean).join(": ");
  return { ...guarded, exitCode, broken, isMissed, ...(why !== undefined && { why }) };
}
