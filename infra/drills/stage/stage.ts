import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { jetstreamManager } from "@nats-io/jetstream";
import { type Config, configFrom } from "../../../functions/wiring/config.ts";
import type { Wired } from "../../../functions/wiring/wire.node.ts";
import { ensureQueue, queueOf } from "../../../shared/dispatch/dispatch.ts";
import { submit } from "../../../shared/dispatch/submit.ts";
import { variables } from "../../../shared/settings/variables.ts";
import type { State, Task } from "../../../shared/task/document.ts";
import { consumerName, streamName } from "../../../shared/task/names.ts";
import type { LocalNats } from "../../local/nats-server.ts";
import { type Act, MENDED } from "../agents/lib/errand.ts";
import type { PromiseName } from "../facts.ts";
import type { Cluster, ClusterNode } from "../faults/cluster.ts";
import { type Deed, deedsOf } from "../outside/acts.ts";
import { type Board, startBoard } from "../outside/board.ts";
import { type Paced, pacedModel } from "../outside/model.ts";
import { hearWords, type Word } from "../outside/words.ts";
import { until } from "../until.ts";
import { type Actor, type Started, startActor } from "./actor.ts";
import { lookOn } from "./observer.ts";
import type { Place } from "./servers.ts";

export const AGENT = "drill";
export const FRUGAL = "drill-frugal";

/** A task of a drill, and how it has to end. */
export interface Given {
  readonly id: string;
  readonly agent: string;
  ends: State;
}

/** What a drill itself knows of what must not happen any more. */
export interface Claimed {
  readonly at: number;
  readonly why: string;
  /** Nothing of this task may begin: its end was written. */
  readonly over?: string;
  /** Nothing may be done by this process: it can't know that the task is its own. */
  readonly silent?: number;
  /** The drill itself saw it broken. */
  readonly broken?: PromiseName;
}

/** Everything that one drill needs, and what is seen while it runs. */
export interface Stage extends AsyncDisposable {
  /** By a way that is not disturbed, with the drill's settings. */
  readonly deps: Wired;
  /** As its processes have it. */
  readonly config: Config;
  readonly nats: LocalNats;
  readonly cluster: Cluster;
  /** Of the cluster: the server that is not the drill's own. */
  readonly alone: ClusterNode;
  /** Gives its server, whose storage is limited, all that there is. */
  makeRoom(): Promise<void>;
  readonly board: Board;
  readonly model: Paced;
  readonly given: readonly Given[];
  readonly claims: readonly Claimed[];
  readonly words: readonly Word[];
  readonly told: readonly string[];
  deeds(): Deed[];
  /** One more line for whoever follows. */
  tell(line: string): void;
  input(acts: readonly Act[]): { board: string; notes: string; acts: Act[] };
  submit(acts: readonly Act[], more?: { agent?: string; ends?: State }): Promise<string>;
  /** A task of which somebody else sees to it that it is submitted. */
  expect(id: string, ends: State, agent?: string): void;
  runner(name: string, more?: { env?: Readonly<Record<string, string>>; agent?: string }): Promise<Actor>;
  start(actor: Omit<Started, "env"> & { env?: Readonly<Record<string, string>> }): Promise<Actor>;
  claim(claim: Omit<Claimed, "at"> & { readonly at?: number }): void;
  /** Messages in the queue: those that somebody has, and those that wait. */
  left(): Promise<number>;
  /** Of those, the ones that somebody has. */
  held(): Promise<number>;
  /** Runners that wait for a message. */
  waiting(): Promise<number>;
  /** Tells the receiver that the cause of the task's trouble is gone, for its handler to see. */
  mend(id: string): Promise<void>;
  task(id: string): Promise<Task>;
  until<T>(what: string, ask: () => Promise<T | undefined | false>): Promise<T>;
  /** Something that was seen outside. */
  seen(what: string, is: (deed: Deed) => boolean): Promise<Deed>;
  /** Every task is where it has to end, or the patience is over: then the judge says so. */
  settled(): Promise<void>;
  stopAll(): Promise<void>;
}

export interface Setting {
  readonly place: Place;
  readonly patienceMs: number;
  /** Of somebody's own servers nobody has the right to hear every word. */
  readonly hears: boolean;
  readonly agents: readonly string[];
  readonly compiled: string;
  readonly tell: (line: string) => void;
}

/** Everything of the environment but Pawl's own settings, which are the drill's. */
function inherited(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !(name in variables)));
}

export async function setStage(setting: Setting): Promise<Stage> {
  const { place, tell, agents } = setting;
  await using starting = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), "pawl-drill-"));
  starting.defer(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }));
  const notes = join(folder, "notes.jsonl");
  await writeFile(notes, "");
  const board = starting.use(await startBoard());
  const model = starting.use(await pacedModel());
  const config = configFrom(place.env);
  const deps = starting.use(await lookOn(config));
  // With the settings of a real deployment everything takes its time.
  const patienceMs = Math.max(setting.patienceMs, 10 * deps.settings.ackWait);
  const signalMs = Math.max(60_000, patienceMs);
  const words: Word[] = [];
  for (const agent of agents) {
    const queue = queueOf(deps, { agent, lane: 0 });
    await ensureQueue(deps, queue, "correct");
    if (setting.hears) hearWords(deps.nc, queue, words);
  }
  const env = {
    ...place.env,
    TMPDIR: folder,
    // A runner is there in half the time if another one has compiled its code before.
    NODE_COMPILE_CACHE: setting.compiled,
    PAWL_AGENTS_DIR: fileURLToPath(new URL("../agents", import.meta.url)),
    ANTHROPIC_API_KEY: "stand-in",
    ANTHROPIC_BASE_URL: model.url,
  };
  const actors = starting.use(new AsyncDisposableStack());
  const given: Given[] = [];
  const claims: Claimed[] = [];
  const told: string[] = [];
  const begun = Date.now();
  const sayTo = (line: string) => {
    const text = `${((Date.now() - begun) / 1000).toFixed(1).padStart(5)} s  ${line}`;
    told.push(text);
    tell(text);
  };
  const deeds = () => deedsOf(notes, board, model.asked);
  const input = (acts: readonly Act[]) => ({ board: board.url, notes, acts: [...acts] });
  const start: Stage["start"] = async ({ env: more, ...actor }) =>
    actors.use(await startActor({ ...actor, env: { ...inherited(), ...env, ...more } }));
  const task = async (id: string) => {
    const found = await deps.store.get(id);
    if (!found) throw new Error(`Task ${id} is gone`);
    return found.task;
  };
  const isAtEnd = async ({ id, ends }: Given) => (await deps.store.get(id))?.task.state === ends;
  const left = async () => {
    const states = await Promise.all(
      agents.map((agent) => deps.bus.state(queueOf(deps, { agent, lane: 0 }))),
    );
    return states.reduce((sum, one) => sum + one.pending + one.inFlight, 0);
  };
  const isQuiet = async () => (await left()) === 0;
  const queue = queueOf(deps, { agent: agents[0] as string, lane: 0 });
  const patient = (what: string, ask: () => Promise<boolean>) =>
    until(what, ask, patienceMs).catch((error: unknown) =>
      sayTo(`${(error as Error).message.split("\n")[0]}`),
    );
  const own = starting.move();
  return {
    deps,
    config,
    get nats() {
      return place.nats as LocalNats;
    },
    get cluster() {
      return place.cluster as Cluster;
    },
    makeRoom: async () => place.makeRoom?.(),
    get alone() {
      return place.alone as ClusterNode;
    },
    board,
    model,
    given,
    claims,
    words,
    told,
    deeds,
    tell: sayTo,
    input,
    submit: async (acts, { agent = AGENT, ends = "completed" } = {}) => {
      const id = `drill-${crypto.randomUUID().slice(0, 8)}`;
      given.push({ id, agent, ends });
      await submit(deps, { agent, lanes: 1, id, input: input(acts) });
      sayTo(`submitted ${id}`);
      return id;
    },
    expect: (id, ends, agent = AGENT) => {
      const known = given.find((one) => one.id === id);
      if (known) known.ends = ends;
      else given.push({ id, agent, ends });
    },
    runner: (name, { env: more, agent = AGENT } = {}) =>
      start({ name: `runner ${name}`, script: "runner", args: [agent], ...(more && { env: more }) }),
    start,
    claim: (claim) => void claims.push({ at: Date.now(), ...claim }),
    left,
    held: async () => (await deps.bus.state(queue)).inFlight,
    waiting: async () => {
      const jsm = await jetstreamManager(deps.nc, { checkAPI: false });
      return (await jsm.consumers.info(streamName(queue), consumerName(queue))).num_waiting;
    },
    mend: async (id) => {
      await fetch(`${board.url}/${id}/${MENDED}`, { method: "POST", body: MENDED });
    },
    task,
    until: (what, ask) => until(what, ask, signalMs),
    seen: (what, is) => until(what, async () => deeds().find(is), signalMs),
    settled: async () => {
      for (const one of given) await patient(`${one.id} is ${one.ends}`, () => isAtEnd(one));
      await patient("nothing is left in the queue", isQuiet);
    },
    stopAll: () => actors.disposeAsync(),
    [Symbol.asyncDispose]: () => own.disposeAsync(),
  };
}
