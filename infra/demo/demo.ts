/**
 * The incident that Pawl exists for, on real servers: a task is done, its runner dies before the ack, and JetStream
 * delivers the task again. Ends with 1 if any completed work was done twice, or any task was lost.
 */
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { configFrom } from "../../functions/wiring/config.ts";
import { type Wired, wire } from "../../functions/wiring/wire.node.ts";
import { queueOf } from "../../shared/dispatch/dispatch.ts";
import { submit } from "../../shared/dispatch/submit.ts";
import { readReport } from "../../shared/reconcile/books/reports.ts";
import { headlines } from "../../shared/reconcile/page/headlines.ts";
import { tables } from "../../shared/reconcile/page/sections.ts";
import { writers } from "../../shared/reconcile/page/writers.ts";
import { reconcile } from "../../shared/reconcile/reconcile.ts";
import { readVariable } from "../../shared/settings/variables.ts";
import type { Task } from "../../shared/task/document.ts";
import { sayDuration } from "../../shared/values/duration.ts";
import { printable } from "../cli/output.ts";
import { HOW_TO_GET, startEmulator } from "../local/emulator.ts";
import { startModel, text } from "../local/model.ts";
import { startNats } from "../local/nats-server.ts";
import { type ServerProcess, startServer } from "../local/process.ts";
import { ENDING } from "../project.ts";
import { judge } from "./verdict.ts";

const AGENT = "blog-post";
const at = (file: string) => fileURLToPath(new URL(file, import.meta.url));
const begun = Date.now();
const say = (line = "") => console.log(line.split("\n").map(printable).join("\n"));
const step = (line: string) => say(`  ${((Date.now() - begun) / 1000).toFixed(1).padStart(5)} s  ${line}`);

const folder = await mkdtemp(join(tmpdir(), "pawl-demo-"));
const posts = join(folder, "posts.jsonl");
await writeFile(posts, "");
await using nats = await startNats({ tell: say });
await using emulator = await startEmulator();
// Like a model, it writes something else each time it is asked.
await using model = await startModel((_, n) => text(`Draft ${n}: a ratchet without its pawl slips back.`));
const key = readVariable(process.env, "ANTHROPIC_API_KEY");
// With a key of your own the same code asks the real one.
const modelUrl = readVariable(process.env, "ANTHROPIC_BASE_URL") ?? (key ? undefined : model.url);
const env = {
  NATS_URL: nats.url,
  PAWL_NAMESPACE: "demo",
  PAWL_ACK_WAIT: "3s",
  PAWL_AGENTS_DIR: at("agents"),
  PAWL_DEMO_POSTS: posts,
  ANTHROPIC_API_KEY: key ?? "stand-in",
  ...(modelUrl && { ANTHROPIC_BASE_URL: modelUrl }),
  ...(emulator
    ? {
        PAWL_STORE: "firestore-rest",
        GOOGLE_CLOUD_PROJECT: "pawl-demo",
        FIRESTORE_EMULATOR_HOST: emulator.host,
      }
    : { PAWL_STORE: "nats-kv" }),
};
await using deps = await wire(configFrom(env), () => {});
await deps.bus.ensure(queueOf(deps, { agent: AGENT, lane: 0 }));

say("Pawl demo: the incident that Pawl exists for, on real servers.");
if (!emulator) say(`No Firestore emulator here, so documents are kept in NATS KV. Get it: ${HOW_TO_GET}`);
say(`  messages: ${deps.bus.name}    documents: ${deps.store.name}    ack_wait: 3 s`);

const caught = { window: 0, subject: 0, document: 0, key: 0 };
await afterTheWork(deps);
await inTheWork(deps);
await publishedAgain(deps);
process.exitCode = Math.max(await verdict(deps), await reported(deps));
await rm(folder, { recursive: true, force: true });

async function afterTheWork(deps: Wired): Promise<void> {
  say("\n1. The work is done, and its runner is killed before the ack");
  await submitPost("post-1", 0.3);
  const a = await runner("before:ack");
  await a.says(/^AT work/);
  step("runner A claimed it (fence 1) and writes the post");
  await a.says(/^AT before:ack/);
  step("the post is published, and the completion record is written");
  await killA(a, "before its ack");
  step(`the message is still in the queue: ${(await deps.bus.state(queue())).inFlight} in flight`);
  const b = await runner();
  await b.says(/"task":"post-1".*"as":"skipped"/);
  step("JetStream delivered it again, to runner B, which found sequence 1 settled: skipped, and acked");
  caught.document += (await task("post-1")).redeliveriesSkipped;
  await b.stop();
}

async function inTheWork(deps: Wired): Promise<void> {
  say("\n2. The same, with the kill in the middle of the work");
  await submitPost("post-2", 1.5);
  const a = await runner();
  await a.says(/^AT work/);
  step("runner A claimed it (fence 1), its model wrote a draft, and it makes ready to publish");
  await killA(a, "in the middle of the work: nothing published, no result recorded");
  const b = await runner();
  const wait = await b.says(/"event":"takeover.wait"/);
  step(
    `delivered again: runner B took it over (fence 2), and waits ${sayDuration(JSON.parse(wait).ms)} until A can't act any more`,
  );
  await b.says(/^AT work/);
  step("runner B goes on with A's draft, from the journal");
  await b.says(/"task":"post-2".*"as":"completed"/);
  step("the post is published, the record written, the message acked");
  await b.stop();
  step(
    `${(await deps.bus.state(queue())).inFlight} in flight, ${(await task("post-2")).executions} starts, 1 of them finished`,
  );
  const { spent, saved } = await task("post-2");
  step(
    `the model was paid for ${spent.turns} turn of ${spent.turns + saved.turns}: the journal had the other`,
  );
}

async function publishedAgain(deps: Wired): Promise<void> {
  say("\n3. Somebody submits the same work again, and again");
  await submitPost("post-3", 0);
  for (const [how, msgId] of [
    ["again", undefined],
    ["with another Msg-Id", "another"],
    ["when it is done", undefined],
  ] as const) {
    if (how === "when it is done") {
      const c = await runner();
      await c.says(/"task":"post-3".*"as":"completed"/);
      await c.stop();
      step("runner C did it");
    }
    const again = await submit(deps, { ...submission("post-3", 0), ...(msgId && { msgId }) });
    step(`submitted ${how}: ${again.kind}, stopped by the ${layerName(again.stoppedBy)}`);
    if (again.stoppedBy) caught[again.stoppedBy]++;
  }
}

async function verdict(deps: Wired): Promise<number> {
  const published = (await readFile(posts, "utf8")).split("\n").filter(Boolean);
  const accounts = await Promise.all(
    ["post-1", "post-2", "post-3"].map(async (id) => {
      const done = published.filter((line) => (JSON.parse(line) as { id: string }).id === id).length;
      return { id, state: (await task(id)).state, done };
    }),
  );
  const { pending, inFlight } = await deps.bus.state(queue());
  const { twice, lost, ok } = judge(accounts, pending + inFlight);
  say("\nWhat each layer caught");
  say(`  the stream's duplicate window   ${caught.window}`);
  say(`  the occupied subject            ${caught.subject}`);
  say(`  the document                    ${caught.document}`);
  const names = (ids: readonly string[]) => ids.join(", ") || "none";
  say(
    `\n${accounts.length} tasks, ${published.length} posts. Done twice: ${names(twice)}. Lost: ${names(lost)}.`,
  );
  say(ok ? "Every task was done exactly once." : "That is a bug in Pawl: please report it with this output.");
  return ok ? 0 : 1;
}

/** What an agent author reads on Monday, here after a minute. */
async function reported(deps: Wired): Promise<number> {
  const done = await reconcile(deps, new AbortController().signal, { repair: true, writers });
  if (!done) return 1;
  const { text } = await readReport(deps.store, "html", done.listed.name);
  const file = join(await mkdtemp(join(tmpdir(), "pawl-report-")), `${done.listed.name}.html`);
  await writeFile(file, text);
  const shown = new Set(["Exactly once", "What became of every sequence", "Money"]);
  say(`\nThe report of ${done.listed.name}: ${done.listed.verdict}`);
  for (const { label, value, note } of headlines(done.report))
    say(`  ${label.padEnd(20)} ${value.padStart(8)}   ${note}`);
  for (const { title, rows = [] } of tables(done.report).filter((one) => shown.has(one.title))) {
    say(`  ${title}`);
    for (const row of rows) say(`    ${row[0]?.padEnd(44)} ${row.at(-1)?.padStart(8)}`);
  }
  say(`The whole of it: ${file}`);
  return done.listed.ok ? 0 : 1;
}

function queue() {
  return queueOf(deps, { agent: AGENT, lane: 0 });
}

async function task(id: string): Promise<Task> {
  const found = await deps.store.get(id);
  if (!found) throw new Error(`Task ${id} is gone`);
  return found.task;
}

function submission(id: string, seconds: number) {
  return { agent: AGENT, lanes: 1, id, input: { title: "Why a ratchet needs a pawl", seconds } };
}

async function submitPost(id: string, seconds: number): Promise<void> {
  await submit(deps, submission(id, seconds));
  step(`submitted ${id}: the document says dispatched, the message is in the stream`);
}

function runner(pauseAt = ""): Promise<ServerProcess> {
  const own = { PATH: process.env.PATH, ...env, PAWL_DRILL_PAUSE_AT: pauseAt };
  return startServer(process.execPath, [at(`../drills/runner${ENDING}`), AGENT], own);
}

async function killA(a: ServerProcess, when: string): Promise<void> {
  process.kill(a.pid, "SIGKILL");
  await a.exited;
  step(`runner A is killed with SIGKILL, ${when}`);
}

function layerName(layer: keyof typeof caught | undefined): string {
  const names = {
    window: "stream's duplicate window",
    subject: "occupied subject",
    document: "document",
    key: "key",
  };
  return names[layer ?? "document"];
}
