import { columns } from "../../cli/columns.ts";
import type { Drill } from "../drill.ts";
import { runsOnTarget } from "../facts.ts";

const NEEDS: Readonly<Record<string, string>> = {
  server: "a server of its own",
  cluster: "three servers",
  firestore: "Firestore's emulator",
};

export const needsOf = (drill: Drill): string =>
  drill.needs.flatMap((need) => NEEDS[need] ?? []).join(", ") || "a server";

/** For `--list`. */
export function listLines(drills: readonly Drill[]): readonly string[] {
  const rows = drills.map((one) => [
    one.name,
    one.fault,
    one.about,
    needsOf(one),
    runsOnTarget(one) ? "yes" : "",
    one.seconds,
  ]);
  return columns(["drill", "fault", "promise", "needs", "--target", "seconds"], rows);
}

export function asJson(drill: Drill) {
  const { name, what, fault, about, seconds } = drill;
  return { name, what, fault, promise: about, needs: needsOf(drill), target: runsOnTarget(drill), seconds };
}
