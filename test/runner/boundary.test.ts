import { setTimeout as sleep } from "node:timers/promises";
import { beforeAll, describe, expect, test } from "vitest";
import type { StoreKind } from "../../functions/wiring/config.ts";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { defineAgent } from "../../shared/agent.ts";
import type { KeptMessage } from "../../shared/ports/bus.ts";
import { createApp } from "../../shared/web/app.ts";
import { createToken } from "../../shared/web/tokens.ts";
import { AGENT, type Bench, bench } from "../support/bench.ts";
import { hasEmulator, testNats } from "../support/servers/stores.ts";
import { until } from "../support/time/until.ts";

/**
 * The same work once more, so many duplicate windows after the first: by the very message again, by a submit with the
 * caller's own Msg-Id, and by a request with the same Idempotency-Key. Which layer stops it, if its task is still
 * queued or completed, on the server that took it or on one that was killed and restarted in between.
 *
 * A restarted server has forgotten the ids of what was acked, so the document has to stop those inside the window too;
 * and nats-server 2.15 remembers the ids of what is still queued for a whole window more, which 2.10 does not.
 */
const TABLE = `
  when | how     | task      | server    | layer
  0.25 | message | queued    | up        | window
  0.99 | message | queued    | up        | window
  1.01 | message | queued    | up        | subject
  30   | message | queued    | up        | subject
  0.25 | message | completed | up        | window
  0.99 | message | completed | up        | window
  1.01 | message | completed | up        | document
  30   | message | completed | up        | document
  0.25 | submit  | queued    | up        | window
  0.99 | submit  | queued    | up        | window
  1.01 | submit  | queued    | up        | subject
  30   | submit  | queued    | up        | subject
  0.25 | submit  | completed | up        | document
  0.99 | submit  | completed | up        | document
  1.01 | submit  | completed | up        | document
  30   | submit  | completed | up        | document
  0.25 | key     | queued    | up        | key
  0.99 | key     | queued    | up        | key
  1.01 | key     | queued    | up        | key
  30   | key     | queued    | up        | key
  0.25 | key     | completed | up        | key
  0.99 | key     | completed | up        | key
  1.01 | key     | completed | up        | key
  30   | key     | completed | up        | key
  0.25 | message | queued    | restarted | window
  0.99 | message | queued    | restarted | window
  1.01 | message | queued    | restarted | window or subject
  30   | message | queued    | restarted | subject
  0.25 | message | completed | restarted | document
  0.99 | message | completed | restarted | document
  1.01 | message | completed | restarted | document
  30   | message | completed | restarted | document
  0.25 | submit  | queued    | restarted | window
  0.99 | submit  | queued    | restarted | window
  1.01 | submit  | queued    | restarted | window or subject
  30   | submit  | queued    | restarted | subject
  0.25 | submit  | completed | restarted | document
  0.99 | submit  | completed | restarted | document
  1.01 | submit  | completed | restarted | document
  30   | submit  | completed | restarted | document
  0.25 | key     | queued    | restarted | key
  0.99 | key     | queued    | restarted | key
  1.01 | key     | queued    | restarted | key
  30   | key     | queued    | restarted | key
  0.25 | key     | completed | restarted | key
  0.99 | key     | completed | restarted | key
  1.01 | key     | completed | restarted | key
  30   | key     | completed | restarted | key
`;

const rows = TABLE.trim()
  .split("\n")
  .slice(1)
  .map((line) => {
    const [when = "", how = "", task = "", server = "", layer = ""] = line
      .split("|")
      .map((cell) => cell.trim());
    return { when: Number(when), how, task, server, layer };
  });
type Row = (typeof rows)[number];

/** Scaled down; thirty of them are six seconds. */
const windowOf = ({ when }: Row) => (when === 30 ? 200 : 8_000);

interface Outcome {
  readonly layer: string;
  /** How many windows after the first it really was; where the window should stop it, once the stream had answered. */
  readonly after: number;
  readonly runs: number;
  readonly executions: number;
}

/** One task of a row, on a queue of its own: ids that leave the window close to each other leave it together. */
interface Trial extends AsyncDisposable {
  readonly b: Bench;
  repeat(): Promise<Outcome>;
}

async function begin(nats: LocalNats, kind: StoreKind, row: Row): Promise<Trial> {
  const runs: string[] = [];
  const agent = defineAgent({ run: ({ id }) => void runs.push(id) });
  const b = await bench(nats, kind, agent, { duplicateWindow: windowOf(row) });
  const app = createApp({ agents: [{ name: AGENT, lanes: 1 }] });
  const token = await createToken(b.deps.store, { owner: "o", scopes: ["submit"], createdAt: Date.now() });
  const request = async () => {
    const response = await app.request(
      "/v1/tasks",
      {
        method: "POST",
        headers: { authorization: `Bearer ${token}`, "idempotency-key": "order 66" },
        body: JSON.stringify({ agent: AGENT, input: { n: 1 } }),
      },
      { open: async () => b.deps, log: b.deps.log },
    );
    const body = (await response.json()) as { id: string; kind: string; stoppedBy?: string };
    return { status: response.status, ...body };
  };
  const submit = () => b.submit({ n: 1 }, { id: "t", msgId: "mine" });

  const first = row.how === "key" ? await request() : await submit();
  expect(first).toMatchObject({ kind: "accepted" });
  const [message] = await b.deps.bus.survivors(b.queue, 1, 1);
  const stored = message as KeptMessage;
  if (row.task === "completed") expect(await b.drain()).toEqual({ completed: 1 });

  const stoppedBy = async (): Promise<string> => {
    if (row.how === "submit") return (await submit()).stoppedBy ?? "nothing";
    if (row.how === "key") {
      const { status, kind: as, stoppedBy: layer = "nothing" } = await request();
      return status === 200 && as === "already" ? layer : `${status} ${as}`;
    }
    const headers = Object.fromEntries([...stored.headers].filter(([name]) => name.startsWith("Pawl-")));
    const again = { taskId: "t", data: stored.data, msgId: "mine", headers };
    const { kind: as } = await b.deps.bus.publish(b.queue, again);
    return { duplicate: "window", occupied: "subject", stored: "nothing so far" }[as];
  };
  // Timers may be early by one.
  const due = stored.at + row.when * windowOf(row) + 2;
  const passed = (at: number) => sleep(Math.max(0, at - Date.now()));
  return {
    b,
    repeat: async () => {
      // What the window stops is begun before, and then held back: what comes before a publish may take long.
      await passed(row.layer === "window" ? due - 1_000 : due);
      let at = Date.now();
      const { bus } = b.deps;
      const publish: typeof bus.publish = async (...args) => {
        await passed(due);
        const published = await bus.publish(...args);
        if (row.layer === "window") at = Date.now();
        return published;
      };
      Object.assign(b.deps, { bus: { ...bus, publish } });
      const stopped = await stoppedBy();
      const after = (at - stored.at) / windowOf(row);
      const tally = await b.drain();
      const { settled, executions } = await b.task(first.id);
      // It got into the stream: delivered, not run, and accounted for.
      const isSurplus = tally.surplus === 1 && settled.at(-1)?.outcome === "duplicate";
      const layer = stopped === "nothing so far" && isSurplus ? "document" : stopped;
      expect(await b.deps.bus.state(b.queue)).toEqual({ pending: 0, inFlight: 0 });
      return { layer, after, runs: runs.length, executions };
    },
    [Symbol.asyncDispose]: () => b[Symbol.asyncDispose](),
  };
}

/** All rows at once. A row that a busy machine made miss its moment is tried anew. */
async function runAll(kind: StoreKind, server: string): Promise<Map<Row, Outcome>> {
  await using nats = await testNats();
  const outcomes = new Map<Row, Outcome>();
  let left = rows.filter((row) => row.server === server);
  for (let time = 0; left.length > 0 && time < 12; time++) {
    const trials = await Promise.all(left.map((row) => begin(nats, kind, row)));
    if (server === "restarted") {
      await nats.halt("SIGKILL");
      await nats.restart();
      const isBack = ({ b }: Trial) => b.deps.bus.state(b.queue).then(Boolean, () => false);
      await Promise.all(trials.map((trial) => until("it is back", () => isBack(trial))));
    }
    const all = await Promise.all(trials.map((trial) => trial.repeat()));
    for (const [i, row] of left.entries()) outcomes.set(row, all[i] as Outcome);
    await Promise.all(trials.map((trial) => trial[Symbol.asyncDispose]()));
    left = left.filter((row) => row.when < 1 && (outcomes.get(row) as Outcome).after >= 1);
  }
  return outcomes;
}

describe.each([
  { kind: "nats-kv", here: true },
  { kind: "firestore-rest", here: hasEmulator },
] as const)("$kind", ({ kind, here }) => {
  describe.skipIf(!here)("the same work again", () => {
    let outcomes: Map<Row, Outcome>;
    beforeAll(async () => {
      const both = await Promise.all(["up", "restarted"].map((server) => runAll(kind, server)));
      outcomes = new Map(both.flatMap((map) => [...map]));
    }, 300_000);
    test.each(rows)("$when windows later, by $how, $task, server $server: stopped by $layer", (row) => {
      const { after, ...outcome } = outcomes.get(row) as Outcome;
      expect(after).toBeGreaterThanOrEqual(row.when);
      if (row.when < 1) expect(after).toBeLessThan(1);
      expect(row.layer.split(" or ")).toContain(outcome.layer);
      expect(outcome).toMatchObject({ runs: 1, executions: 1 });
    });
  });
});
