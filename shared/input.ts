import type { StandardSchemaV1 } from "@standard-schema/spec";
import { messageOf, PawlError } from "./errors/errors.ts";
import { copyOf, type JsonObject } from "./values/json.ts";

/** Of a schema's issues so many are named, each in so many characters: both may be made of the input, which is a stranger's. */
const MOST_ISSUES = 5;
const LONGEST_PATH = 200;
const LONGEST_MESSAGE = 300;

/** What an agent's schema makes of an input, or why it does not accept it. */
export type Accepted = { readonly value: unknown } | { readonly problem: PawlError };

/** The input as the agent's schema accepts it, or why it does not: the handler's own, which it may change. */
export async function acceptedInput(
  { input: schema }: { readonly input?: StandardSchemaV1 },
  input: JsonObject,
): Promise<Accepted> {
  const own = copyOf(input);
  if (!schema) return { value: own };
  try {
    const checked = await schema["~standard"].validate(own);
    if (!checked.issues) return { value: checked.value };
    return { problem: refused(`The agent does not accept this input. ${issuesText(checked.issues)}`) };
  } catch (error) {
    return { problem: refused(`The agent's schema threw: ${cut(messageOf(error), LONGEST_MESSAGE)}`) };
  }
}

const refused = (message: string) => new PawlError("input_invalid", message);

/** The first issues, each with its path; how many more there are. */
export function issuesText(issues: readonly StandardSchemaV1.Issue[]): string {
  const named = issues.slice(0, MOST_ISSUES).map(({ message, path }) => {
    const at = path?.map((part) => String(typeof part === "object" ? part.key : part)).join(".");
    const text = cut(String(message), LONGEST_MESSAGE);
    return at ? `${cut(at, LONGEST_PATH)}: ${text}` : text;
  });
  const more = issues.length - named.length;
  return `${named.join("; ")}${more > 0 ? `; and ${more} more` : ""}`;
}

function cut(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most)}…` : text;
}
