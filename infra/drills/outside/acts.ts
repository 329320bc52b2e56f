import { readFileSync } from "node:fs";
import type { LocalModel } from "../../local/model.ts";
import type { Board } from "./board.ts";

/** Something that an execution did, as seen outside of Pawl. `at`: the moment before it looked at its signal. */
export interface Deed {
  readonly at: number;
  readonly id: string;
  readonly run: string;
  readonly pid: number;
  readonly what: "start" | "act" | "end";
  /** Which of its calls; none for a start or an end. */
  readonly deed?: string;
  readonly kind: "note" | "post" | "turn";
}

/** When each request came, which the stand-in itself does not say. */
export interface Asked {
  readonly at: number;
  readonly request: LocalModel["requests"][number];
}

const pidOf = (run: string) => Number(run.split("-")[0]);

/** By the handlers' file, the receiver of effects, and the model's stand-in, in the order of time. */
export function deedsOf(file: string, { posts }: Pick<Board, "posts">, asked: readonly Asked[]): Deed[] {
  const notes = readFileSync(file, "utf8")
    .split("\n")
    .filter(Boolean)
    .map((line): Deed => ({ ...(JSON.parse(line) as Deed), kind: "note" }));
  const sent = posts
    .filter(({ text }) => text.startsWith("{"))
    .map(({ path, text }): Deed => {
      const { deed, run, at } = JSON.parse(text) as { deed: string; run: string; at: number };
      return { at, id: path.split("/")[0] ?? "", run, pid: pidOf(run), what: "act", deed, kind: "post" };
    });
  const turns = asked.map(({ at, request: { body } }): Deed => {
    const [run = "", name] = (body.metadata as { user_id: string }).user_id.split(" ");
    const [first] = body.messages as { content: string }[];
    return {
      at,
      id: String(first?.content),
      run,
      pid: pidOf(run),
      what: "act",
      deed: `${name}/turn 1`,
      kind: "turn",
    };
  });
  return [...notes, ...sent, ...turns].sort((a, b) => a.at - b.at);
}
