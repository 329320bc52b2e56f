import { text, type Variable } from "./variable.ts";

/** For deploys to Google Cloud: they stand in gcp.env only, and no function sees them. */
export const deployVariables = {
  REGION: {
    form: "a region of Google Cloud's, such as europe-west1",
    meaning: "Where functions and their schedules are deployed.",
    readBy: ["deploy"],
    read: text,
  },
  SECRETS: {
    form: "names of variables, separated by commas",
    meaning: "Variables that come from Secret Manager, beside `PAWL_RUN_SECRET`.",
    readBy: ["deploy"],
    unset: "none",
    read: (names) =>
      names
        .split(",")
        .map((name) => name.trim())
        .filter(Boolean),
  },
} as const satisfies Record<string, Variable>;

/** For what runs on a machine of one's own. */
export const localVariables = {
  PAWL_AGENTS_DIR: {
    form: "a folder",
    meaning: "Folder of agent files.",
    readBy: ["command"],
    unset: "agents/",
    read: text,
  },
  PAWL_NATS_SERVER: {
    form: "the path of a nats-server 2.10 or newer",
    meaning: "The server that `npm run dev`, the demo and the tests start.",
    readBy: ["local"],
    unset: "the one on the PATH, or fetched by Debian's apt",
    read: text,
  },
  PAWL_CHROMIUM: {
    form: "the path of a Chromium",
    meaning: "The browser of the dashboard's tests.",
    readBy: ["local"],
    unset: "the one on the PATH, or installed by Debian's apt",
    read: text,
  },
  XDG_CACHE_HOME: {
    form: "a folder",
    meaning: "Where servers that were fetched are kept.",
    readBy: ["local"],
    unset: "~/.cache",
    read: text,
  },
  PAWL_DEMO_POSTS: {
    form: "the path of a file",
    meaning: "Where the demo's agent writes what it published. The demo sets it.",
    readBy: ["drill"],
    read: text,
  },
  PAWL_DRILL_PAUSE_AT: {
    form: "a boundary, such as before:ack",
    meaning: "Where a drill's runner stops dead, once.",
    readBy: ["drill"],
    read: text,
  },
  PAWL_DRILL_RESUME: {
    form: "anything",
    meaning: "A drill's runner that stopped goes on when it gets SIGUSR2.",
    readBy: ["drill"],
    read: text,
  },
} as const satisfies Record<string, Variable>;
