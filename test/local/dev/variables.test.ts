import { expect, test } from "vitest";
import { asExports } from "../../../infra/local/dev/environment.ts";
import { authorsOwn, forCommands, missingSecrets, ownOf } from "../../../infra/local/dev/variables.ts";

const none = { vars: {}, devVars: {}, shell: {} };

test("the shell is stronger than .dev.vars, and that than [vars]; an empty one is none", () => {
  const sources = {
    vars: { A: "vars", B: "vars", C: "vars", D: "vars" },
    devVars: { B: "dev", C: "dev", D: "", E: "" },
    shell: { C: "shell", D: "", E: "shell" },
  };
  expect(authorsOwn(sources)).toMatchObject({ A: "vars", B: "dev", C: "shell", D: "vars", E: "shell" });
});

test("of the shell come Pawl's settings, what the files name, and what an agent declares: nothing else", () => {
  const shell = {
    PAWL_WEBHOOK_URL: "https://hook.example.com",
    PAWL_CORS_ORIGIN: "https://app.example.com",
    BOARD: "b",
    JIRA_TOKEN: "j",
    AWS_SECRET_ACCESS_KEY: "mine",
    PATH: "/bin",
    PAWL_CHROMIUM: "/usr/bin/chromium",
  };
  const own = authorsOwn({ ...none, vars: { BOARD: "v" }, shell }, new Map([["support", ["JIRA_TOKEN"]]]));
  expect(Object.keys(own).sort()).toEqual([
    "BOARD",
    "JIRA_TOKEN",
    "PAWL_ACK_WAIT",
    "PAWL_CORS_ORIGIN",
    "PAWL_WEBHOOK_URL",
  ]);
});

test("what leads to servers is dev's own, whoever says otherwise", () => {
  const production = {
    NATS_URL: "wss://nats.example.com",
    NATS_PASSWORD: "p",
    PAWL_STORE: "firestore",
    PAWL_REPLICAS: "3",
    GOOGLE_APPLICATION_CREDENTIALS: "{}",
    PAWL_RUN_SECRET: "x".repeat(16),
    PAWL_WAKE_URL: "https://pawl-{agent}.example.com/run",
  };
  for (const source of ["vars", "devVars", "shell"] as const)
    expect(authorsOwn({ ...none, [source]: production })).toEqual({ PAWL_ACK_WAIT: "6s" });
});

test("ack_wait is short here whatever production has, unless it is set for here", () => {
  expect(authorsOwn({ ...none, vars: { PAWL_ACK_WAIT: "60s" } })).toEqual({ PAWL_ACK_WAIT: "6s" });
  expect(authorsOwn({ ...none, devVars: { PAWL_ACK_WAIT: "9s" } })).toEqual({ PAWL_ACK_WAIT: "9s" });
});

test("a declared secret is for those who declare it; what nobody declares is for all", () => {
  const declared = new Map([
    ["support", ["JIRA_TOKEN", "PAWL_CORS_ORIGIN"]],
    ["billing", ["STRIPE_KEY"]],
    ["hello", []],
  ]);
  const own = { JIRA_TOKEN: "j", STRIPE_KEY: "s", BOARD: "b", PAWL_CORS_ORIGIN: "https://a.example" };
  const names = (name: string) => Object.keys(ownOf(name, own, declared));
  expect(names("support")).toEqual(["JIRA_TOKEN", "BOARD", "PAWL_CORS_ORIGIN"]);
  expect(names("billing")).toEqual(["STRIPE_KEY", "BOARD", "PAWL_CORS_ORIGIN"]);
  for (const name of ["hello", "api", "dispatch"]) expect(names(name)).toEqual(["BOARD", "PAWL_CORS_ORIGIN"]);
  expect(missingSecrets({ STRIPE_KEY: "s" }, declared)).toEqual([
    { agent: "support", secret: "JIRA_TOKEN" },
    { agent: "support", secret: "PAWL_CORS_ORIGIN" },
  ]);
});

test("commands get Pawl's settings, and its secrets only where they are not shown", () => {
  const own = { BOARD: "b", PAWL_NAMESPACE: "mine", PAWL_SEAL_KEY: "k".repeat(16), ANTHROPIC_API_KEY: "sk" };
  expect(forCommands(own, "without secrets")).toEqual({ PAWL_NAMESPACE: "mine" });
  expect(Object.keys(forCommands(own, "with secrets"))).toEqual([
    "PAWL_NAMESPACE",
    "PAWL_SEAL_KEY",
    "ANTHROPIC_API_KEY",
  ]);
  expect(asExports({ A: "it's $HOME" })).toBe("export A='it'\\''s $HOME'\n");
});
