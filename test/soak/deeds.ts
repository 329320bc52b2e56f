import { closeSync, openSync, readSync } from "node:fs";
import type { Board } from "../../infra/drills/outside/board.ts";
import type { Note } from "../support/servers/runners.ts";
import type { Asked } from "./work.ts";

/**
 * Something that an execution did, as seen outside of Pawl. `at` of a line of the file, and of a post, is the moment before
 * the handler's last look at its signal; of a turn, which Pawl asks for, the moment when it arrived.
 */
export interface Deed extends Note {
  /** Which of its calls, as the journal names them, without the ordinal. None for a start or an end. */
  readonly deed?: string;
  /** Of a post: when its receiver had it. */
  readonly arrived?: number;
  /** Of a turn: which request of the stand-in's it was, from 0. */
  readonly request?: number;
}

const pidOf = (run: string) => Number(run.split("-")[0]);

/** All that was seen so far: it only ever grows. */
export interface Deeds {
  readonly all: readonly Deed[];
  /** A turn was asked for. */
  ask(asked: Asked): void;
  /** Reads what is new. */
  refresh(): void;
  /** The process that began an execution last, of these. */
  lastAtWork(pids: readonly number[]): number | undefined;
}

export function deedsOf(file: string, board: Pick<Board, "posts">): Deeds {
  const all: Deed[] = [];
  const starts: Deed[] = [];
  let requests = 0;
  let posts = 0;
  const lines = lineReader(file);
  const refresh = () => {
    for (const line of lines()) {
      const deed = JSON.parse(line) as Deed;
      all.push(deed);
      if (deed.what === "start") starts.push(deed);
    }
    for (; posts < board.posts.length; posts++) {
      const { at: arrived, path, text } = board.posts[posts] as Board["posts"][number];
      const { deed, run, at } = JSON.parse(text) as { deed: string; run: string; at: number };
      all.push({ at, arrived, id: path.split("/")[0] as string, run, pid: pidOf(run), what: "act", deed });
    }
  };
  return {
    all,
    refresh,
    ask: ({ id, run, turn }) => {
      const deed = `ask/turn ${turn}`;
      all.push({ at: Date.now(), id, run, pid: pidOf(run), what: "act", deed, request: requests++ });
    },
    lastAtWork: (pids) => {
      refresh();
      return starts.findLast(({ pid }) => pids.includes(pid))?.pid;
    },
  };
}

/** Gives the whole lines that were appended since the last time. */
function lineReader(file: string): () => string[] {
  const chunk = Buffer.alloc(1024 * 1024);
  let at = 0;
  let rest = "";
  return () => {
    const descriptor = openSync(file, "r");
    try {
      for (let read = -1; read !== 0; at += read) {
        read = readSync(descriptor, chunk, 0, chunk.length, at);
        rest += chunk.toString("latin1", 0, read);
      }
    } finally {
      closeSync(descriptor);
    }
    const lines = rest.split("\n");
    rest = lines.pop() ?? "";
    return lines;
  };
}
