import type { Source } from "./read.ts";
import type { Finding, RuleText } from "./rule.ts";
import { plain } from "./said.ts";

/** SARIF 2.1.0, as code scanning takes it. Findings stand in the file and line that says the field, where there is one. */
export function sarif(
  found: readonly Finding[],
  rules: Readonly<Record<string, RuleText>>,
  sources: readonly Source[],
  version: string,
): object {
  const ids = Object.keys(rules);
  return {
    $schema: "https://json.schemastore.org/sarif-2.1.0.json",
    version: "2.1.0",
    runs: [
      {
        tool: {
          driver: {
            name: "pawl doctor",
            version,
            rules: Object.entries(rules).map(([id, { checks, prevents, severity, mend }]) => ({
              id,
              shortDescription: { text: plain(checks) },
              fullDescription: { text: plain(prevents) },
              help: { text: plain(mend) },
              defaultConfiguration: { level: severity },
            })),
          },
        },
        results: found.map((one) => ({
          ruleId: one.rule,
          ruleIndex: ids.indexOf(one.rule),
          level: one.severity,
          message: { text: `${one.is.replace(/\.$/, "")}. Set ${one.set}` },
          locations: [locationOf(one, sources)],
        })),
      },
    ],
  };
}

function locationOf({ field, subject }: Finding, sources: readonly Source[]): object {
  const logicalLocations = [{ fullyQualifiedName: `${subject}: ${field}` }];
  const name = JSON.stringify(field.split(".").at(-1));
  const at = sources
    .map(({ file, text }) => ({ file, line: text.split("\n").findIndex((line) => line.includes(name)) + 1 }))
    .find(({ line }) => line > 0);
  const [first] = sources;
  if (!first) return { logicalLocations };
  const { file, line } = at ?? { file: first.file, line: 1 };
  const uri = file.split("/").map(encodeURIComponent).join("/");
  return {
    physicalLocation: { artifactLocation: { uri }, region: { startLine: line } },
    logicalLocations,
  };
}
