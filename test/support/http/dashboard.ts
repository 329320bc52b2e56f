import type { LocalNats } from "../../../infra/local/nats-server.ts";
import { deltaHolder } from "../../../shared/adapters/jetstream/delta-holder.ts";
import { deltaListener } from "../../../shared/adapters/jetstream/delta-listener.ts";
import { type Agent, type AgentContext, defineAgent, Fatal } from "../../../shared/agent.ts";
import { type Submission, submit } from "../../../shared/dispatch/submit.ts";
import type { Model } from "../../../shared/ports/model.ts";
import { LIST, type Listed, textName } from "../../../shared/reconcile/books/reports.ts";
import { verdictOf } from "../../../shared/reconcile/figures/report.ts";
import { NO_TALLY } from "../../../shared/reconcile/figures/tally.ts";
import { found, mended, NO_FINDINGS } from "../../../shared/reconcile/findings/found.ts";
import { html } from "../../../shared/reconcile/page/html.ts";
import { serve } from "../../../shared/runner/serve.ts";
import type { Task } from "../../../shared/task/document.ts";
import { scripted } from "../../../shared/testing/scripted-model.ts";
import type { JsonObject } from "../../../shared/values/json.ts";
import { createApp } from "../../../shared/web/app.ts";
import { type Scope, scopeNames } from "../../../shared/web/scopes.ts";
import { createToken } from "../../../shared/web/tokens.ts";
import { finding, report, tally } from "../report.ts";
import { wired, world } from "../servers/stores.ts";
import { until } from "../time/until.ts";
import { serveHttp } from "./http.ts";

export const MODEL = "claude-sonnet-5-5";
/** What a model could say to those who look at it. */
export const HOSTILE = [
  "<script>window.pwned=1</script>",
  `"><img src=x onerror="window.pwned=2">`,
  "<svg onload=window.pwned=3></svg>",
  "</pre></main><style>*{display:none!important}</style>",
  `<a href="javascript:window.pwned=4">javascript:window.pwned=4</a>`,
  "' onmouseover='window.pwned=5' x='",
  "\u0000\u001b[31m\u202eevil\u2066\u200f",
  "{{7*7}} <!-- --> ]]> &lt;script&gt;window.pwned=6&lt;/script&gt;",
].join("\n");

const DRAFT =
  "## 4.2\n\nFaster cold starts, and a fix for retries that were counted twice.\n\nThanks to everyone who reported it.";

export const AGENTS = ["release-notes", "invoices", "triage"];

/** Long enough that a page is there before it is over. */
const moment = <T>(value: T) => new Promise<T>((resolve) => setTimeout(resolve, 700, value));

/** One handler for all: its input says how it goes. */
async function act({ input, step, llm, approval, effect, signal }: AgentContext<unknown>, stage: Switches) {
  const { how } = input as { how?: string };
  switch (how) {
    case "approve": {
      await step("commits", () => ["a1b2c3 Start faster", "d4e5f6 Count retries once"]);
      const { text } = await llm("draft", { model: MODEL, prompt: "Write release notes" });
      await approval("publish", { summary: `Publish these notes?\n\n${text}` });
      return effect("post", { run: () => moment({ url: "https://example.org/notes/4.2" }) });
    }
    case "fail":
      await step("invoice", () => ({ number: 1042, total: "118.00" }));
      await moment(0);
      if (stage.isMended) return "sent";
      throw new Fatal("The mail server refused the address: 550 no such user");
    case "doubt":
      return effect("transfer", {
        run: () => {
          throw new Error("the connection was reset after the request was sent");
        },
      });
    case "hostile": {
      await step("<script>window.pwned=7</script>", () => HOSTILE);
      const { text } = await llm("speak", { model: MODEL, prompt: "evil" });
      await approval("go <b>", { summary: text });
      return { [HOSTILE]: HOSTILE };
    }
    case "aloud":
      return (await llm("speak", { model: MODEL, prompt: "aloud, and evil" })).text;
    case "long":
      await step("fetch", () => "ok");
      return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    default:
      return "done";
  }
}

interface Switches {
  isMended: boolean;
  /** What a turn that is under way has said until now, and when it is over. */
  said: string;
  readonly spoken: PromiseWithResolvers<void>;
}

/** Tasks in every state that somebody would want to look at. */
export async function furnish(d: Dashboard): Promise<void> {
  const at = (text: string) => Date.parse(text);
  await d.report({
    name: "2026-10",
    from: at("2026-10-01"),
    to: at("2026-11-01"),
    verdict: "All 5,310 sequences are explained",
    ok: true,
  });
  for (const [name, from, to, whole] of [
    ["2026-W44", "2026-10-26", "2026-11-02", LOOK],
    ["2026-W45", "2026-11-02", "2026-11-09", BROKEN],
  ] as const) {
    const { line: verdict, ok, level } = verdictOf(whole);
    await d.report({ name, from: at(from), to: at(to), verdict, ok, level }, html({ ...whole, name }));
  }
  await d.report(
    {
      name: "2026-W46",
      from: at("2026-11-09"),
      to: at("2026-11-16"),
      verdict: "All 1,204 sequences are explained",
      ok: true,
    },
    REPORT,
  );
  const labels = { team: "docs", env: "production" };
  const input = { how: "approve", repository: "acme/api", since: "4.1.0" };
  await d.submit("release-notes", input, { id: "notes-4-2", meta: { owner: "ann", labels } });
  await d.submit("invoices", { how: "doubt", invoice: 1041 }, { id: "transfer-1041" });
  await d.submit("invoices", { how: "fail", invoice: 1038 }, { id: "invoice-1038" });
  for (let n = 1; n <= 6; n++) await d.submit("triage", { issue: 2_200 + n }, { id: `issue-${2_200 + n}` });
  await d.reaches("issue-2206", "completed");
  await d.submit("triage", { how: "long", issue: 2_207 }, { id: "issue-2207" });
  await d.submit("triage", { how: "long", issue: 2_208 }, { id: "issue-2208" });
  await d.reaches("notes-4-2", "waiting");
  await d.reaches("transfer-1041", "in_doubt");
  await d.reaches("invoice-1038", "failed");
  await d.reaches("issue-2207", "running");
}

const classes = { ...NO_TALLY.classes, completed: 1_185 };
const LOOK = report({
  agents: { invoices: tally({ classes, completed: 1_180, created: 1_190 }) },
  findings: mended(
    found(NO_FINDINGS, finding("in_doubt", "transfer-1041"), finding("overdue", "invoice-1022")),
    "overdue",
    "invoice-1022",
  ),
});
/** With names and details that strangers have chosen. */
const BROKEN = report({
  agents: { invoices: tally({ classes: { ...classes, unexplained: 2 }, completed: 1_180 }) },
  findings: found(
    LOOK.findings,
    finding("unexplained", "PAWL_invoices_0_g1#6", { amount: 2, detail: "sequences 6, 9" }),
    finding("orphan", HOSTILE, { detail: HOSTILE }),
    finding("clock_back", "x".repeat(300), { detail: "x".repeat(300) }),
  ),
  trends: [{ name: HOSTILE, figures: { sequences: 3 } }],
});

const REPORT = `<!doctype html><html lang="en"><title>Report</title><style>body { font: 16px sans-serif; margin: 2rem }</style>
<h1>Week 46</h1><p>All 1,204 sequences are explained.</p><script>top.pwned = 8; window.pwned = 8</script>
<form action="/ui/logout" method="post"><button>x</button></form><img src=x onerror="top.pwned=9">`;

/** The dashboard behind a real HTTP server, with runners of three agents at work in this process. */
export async function dashboard(nats: LocalNats) {
  const deps = await wired(world(nats, "nats-kv").config);
  const model = scripted((request) =>
    JSON.stringify(request.messages).includes("evil")
      ? HOSTILE
      : { content: [{ type: "text", text: DRAFT }], usage: { input_tokens: 2_310, output_tokens: 412 } },
  );
  const stage: Switches = { isMended: false, said: "", spoken: Promise.withResolvers() };
  const slow: Model = {
    ...model,
    turn: async (request, signal, begun) => {
      if (JSON.stringify(request.messages).includes("aloud")) {
        begun?.(() => stage.said);
        await stage.spoken.promise;
      }
      return model.turn(request, signal);
    },
  };
  const tells = deltaHolder(deps.nc, deps.settings);
  Object.assign(deps, { model: slow, tells, hears: deltaListener(deps.nc, deps.settings) });
  const agent: Agent = defineAgent({
    limits: { attempts: 2, backoff: { first: "10ms" } },
    run: (context: AgentContext<unknown>) => act(context, stage),
  });
  const stop = new AbortController();
  const runners = AGENTS.map((name) => serve(deps, { name, agent, mode: "forever", stop: stop.signal }));
  const app = createApp({ agents: AGENTS.map((name) => ({ name, lanes: 1 })) });
  const http = await serveHttp(async (request) =>
    app.fetch(request, { open: async () => deps, log: deps.log, rateLimit: 60_000 }),
  );
  const task = async (id: string): Promise<Task> => {
    const found = await deps.store.get(id);
    if (!found) throw new Error(`no task ${id}`);
    return found.task;
  };
  return {
    deps,
    url: http.url,
    stage,
    task,
    token: (owner: string, scopes: readonly Scope[] = scopeNames) =>
      createToken(deps.store, { owner, scopes, createdAt: Date.now() }),
    submit: (agentName: string, input: JsonObject, more: Partial<Submission> = {}) =>
      submit(deps, { agent: agentName, lanes: 1, input, meta: { owner: "ann" }, ...more }),
    reaches: (id: string, state: Task["state"]) =>
      until(`${id} is ${state}`, async () => (await task(id)).state === state),
    report: async (one: Omit<Listed, "stamp" | "figures">, page = "<h1>Report</h1>") => {
      const there = await deps.store.getRecord(LIST);
      const { reports } = there ? JSON.parse(there.text) : { reports: [] };
      const listed: Listed = { ...one, stamp: crypto.randomUUID(), figures: {} };
      await deps.store.putText(textName(listed, "html"), page);
      const text = JSON.stringify({ reports: [listed, ...reports], marks: {} });
      await deps.store.putRecord(LIST, text, there?.revision);
    },
    [Symbol.asyncDispose]: async () => {
      stop.abort(new Error("the test is over"));
      await http[Symbol.asyncDispose]();
      await Promise.allSettled(runners);
      await deps[Symbol.asyncDispose]();
    },
  };
}

export type Dashboard = Awaited<ReturnType<typeof dashboard>>;
