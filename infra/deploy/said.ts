import type { Along, Plan, SecretState } from "./plan.ts";

/** A plan, in the order in which somebody who was woken by it asks. */
export function planLines({ changes, secrets, missing, along, goBack }: Plan): readonly string[] {
  // Mostly there is one reason for all that is not known: that nobody is logged in.
  const { unknown } = changes;
  const because = (why: string) => (why === unknown ? "" : ` (${why})`);
  return [
    ...(unknown ? [`! What is deployed is not known: ${unknown}`] : []),
    ...part(
      `changes${changes.since ? ` against ${changes.since}` : ""}`,
      unknown ? ["unknown"] : changes.list,
      "nothing differs",
    ),
    ...part("secrets", [...missing, ...secrets.map((one) => secretLine(one, because))], "none"),
    ...(along.length > 0
      ? part(
          "to be deployed along",
          along.map((one) => alongLine(one, because)),
          "none",
        )
      : []),
    ...part(
      `to go back${goBack.revision ? ` to ${goBack.revision}` : ""}`,
      [...goBack.commands, goBack.note],
      "",
    ),
  ];
}

function part(title: string, lines: readonly string[], none: string): string[] {
  const shown = lines.length > 0 ? lines : [none];
  return [`${title}:`, ...shown.flatMap((line) => line.split("\n").map((one) => `  ${one}`))];
}

function secretLine({ name, is, todo = "" }: SecretState, because: (why: string) => string): string {
  if (is === "unknown") return `${name}: unknown${because(todo)}`;
  return `${name}: ${is}${todo && `${is === "missing" ? "." : ":"} ${todo}`}`;
}

function alongLine({ function: name, is, why, todo }: Along, because: (why: string) => string): string {
  if (is === "unknown")
    return `${name}: unknown${because(why.join(", "))}. It carries ${CARRIES[name] ?? "its own code, what that imports, and Pawl"}: deploy it along if these changed`;
  return `${name}: ${is}${why.length > 0 ? ` (${why.join(", ")})` : ""}${todo ? `. ${todo}` : ""}`;
}

const CARRIES: Readonly<Record<string, string>> = {
  reconcile: "every agent's lanes",
  dispatch: "every agent's lanes, dispatchTimeout and schedules",
  api: "every agent's lanes and input, with the code",
};
