import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { configFrom } from "../../functions/wiring/config.ts";
import { type Wired, wire } from "../../functions/wiring/wire.node.ts";
import { type Board, startBoard } from "../../infra/drills/outside/board.ts";
import { type LocalModel, startModel } from "../../infra/local/model.ts";
import { ensureQueue, queueOf } from "../../shared/dispatch/dispatch.ts";
import { type Deeds, deedsOf } from "./deeds.ts";
import { type Crew, startCrew } from "./faults/crew.ts";
import { type RegimeName, regimes, type Servers } from "./faults/regimes.ts";
import { AGENT, LANES, modelScript } from "./work.ts";

const RUNNERS = 6;

/** The protocol's numbers, as the runners have them. */
const SETTINGS = { PAWL_NAMESPACE: "soak", PAWL_ACK_WAIT: "3s", PAWL_CRASH_LIMIT: "100" };
/** For those who hold no lease: nothing that they ask is cut short. */
const CALM = { PAWL_ACK_WAIT: "30s", PAWL_REQUEST_TIMEOUT: "5s" };
/** For those who reconcile: they compare every queue with the settings. */
const PATIENT = { PAWL_REQUEST_TIMEOUT: "1900ms" };

/** Everything that a soak needs, started: servers, runners, and those who look on. */
export interface Stage extends AsyncDisposable {
  /** Of the runners' logs and of the notes. */
  readonly folder: string;
  /** Where the errands' handlers find what they act upon. */
  readonly places: { readonly board: string; readonly notes: string };
  readonly board: Board;
  readonly model: LocalModel;
  readonly deeds: Deeds;
  readonly faults: Servers["faults"];
  readonly crew: Crew;
  /** By the way that is disturbed. */
  readonly submitting: Wired;
  /** By the way that is not, where there is one. */
  readonly looking: Wired;
  /** With the runners' settings, for a reconciliation. */
  reconciling(): Promise<Wired>;
  stopRunners(): Promise<void>;
}

export async function setStage(regime: RegimeName): Promise<Stage> {
  await using starting = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), "pawl-soak-"));
  starting.defer(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }));
  const notes = join(folder, "notes.jsonl");
  await writeFile(notes, "");
  const board = starting.use(await startBoard());
  const deeds = deedsOf(notes, board);
  const model = starting.use(await startModel(modelScript((asked) => deeds.ask(asked))));
  const { ways, direct, faults } = starting.use(await regimes[regime].start());
  const wireTo = (env: Record<string, string>) => wire(configFrom(env), () => {});
  await makeQueues(await wireTo({ ...direct, ...SETTINGS }));
  const submitting = starting.use(await wireTo({ ...(ways.at(-1) ?? {}), ...SETTINGS, ...CALM }));
  const looking = starting.use(await wireTo({ ...direct, ...SETTINGS, ...CALM }));
  const own = {
    ...SETTINGS,
    TMPDIR: folder,
    // A runner is there in half the time if another one has compiled its code before.
    NODE_COMPILE_CACHE: join(folder, "compiled"),
    PAWL_AGENTS_DIR: fileURLToPath(new URL("agents", import.meta.url)),
    ANTHROPIC_API_KEY: "stand-in",
    ANTHROPIC_BASE_URL: model.url,
  };
  const envOf = (place: number) => ({ ...own, ...ways[place % ways.length] });
  const runners = starting.use(new AsyncDisposableStack());
  const crew = runners.use(await startCrew(RUNNERS, envOf, folder, deeds.lastAtWork));
  const started = starting.move();
  return {
    folder,
    places: { board: board.url, notes },
    board,
    model,
    deeds,
    faults,
    crew,
    submitting,
    looking,
    reconciling: () => wireTo({ ...direct, ...SETTINGS, ...PATIENT }),
    stopRunners: () => runners.disposeAsync(),
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  };
}

/** Before the first submit, and as the runners want them. */
async function makeQueues(deps: Wired): Promise<void> {
  await using own = deps;
  for (let lane = 0; lane < LANES; lane++)
    await ensureQueue(own, queueOf(own, { agent: AGENT, lane }), "create");
}
