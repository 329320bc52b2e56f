import { text, type Variable } from "./variable.ts";

const listed = (names: string): readonly string[] =>
  names
    .split(",")
    .map((name) => name.trim())
    .filter(Boolean);

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
    meaning:
      "Pawl's own variables that come from Secret Manager, beside `PAWL_RUN_SECRET`. Each function is given those that it has a use for; agents declare theirs.",
    readBy: ["deploy"],
    unset: "none",
    read: listed,
  },
  OWN_SECRETS: {
    form: "some of NATS_CREDS, NATS_PASSWORD, ANTHROPIC_API_KEY, separated by commas",
    meaning:
      "The same as `SECRETS`, of those that each function has one of its own of: an identity at NATS that may do no more than this function has to. The secret of `NATS_CREDS` for `echo` is `pawl-echo_NATS_CREDS`.",
    readBy: ["deploy"],
    unset: "none",
    read: (names) => {
      const list = listed(names);
      return list.every((name) => /^(NATS_CREDS|NATS_PASSWORD|ANTHROPIC_API_KEY)$/.test(name))
        ? list
        : undefined;
    },
  },
  SERVICE_ACCOUNT: {
    form: "a service account's address, such as pawl-{function}@your-project.iam.gserviceaccount.com",
    meaning:
      "Whom functions run as, sign in as and are woken as; {function} stands for a function's name ([deploy.md](deploy.md#who-may-call)).",
    readBy: ["deploy"],
    unset: "Cloud Run's default account, the same for all",
    read: (email) =>
      /^[a-z][a-z0-9{}-]+@[a-z0-9.-]+\.gserviceaccount\.com$/.test(email) ? email : undefined,
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
  PAWL_ACTOR: {
    form: "a name of A-Z a-z 0-9 _ . @ -",
    meaning: "Who calls a command, as tasks' histories and the audit trail name them.",
    readBy: ["command"],
    unset: "the user of this machine",
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
    form: "boundaries, such as before:ack, separated by commas",
    meaning: "Where a drill's runner stops dead, once at each.",
    readBy: ["drill"],
    read: listed,
  },
  PAWL_DRILL_CLOCK: {
    form: "sleeps",
    meaning:
      "A drill's runner that is frozen takes it for the sleep of its machine: its monotonic clock stands still meanwhile.",
    readBy: ["drill"],
    read: (value) => (value === "sleeps" ? value : undefined),
  },
  PAWL_DRILL_RESUME: {
    form: "anything",
    meaning: "A drill's runner that stopped goes on when it gets SIGUSR2.",
    readBy: ["drill"],
    read: text,
  },
} as const satisfies Record<string, Variable>;
