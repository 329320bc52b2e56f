import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { submit } from "../../shared/dispatch/submit.ts";
import { observer } from "../support/observer.ts";
import {
  holdHandlers,
  letHandlersGo,
  notes,
  pausedRunner,
  pawl,
  recordFile,
} from "../support/servers/runners.ts";
import { oneOfEach, testNats, world } from "../support/servers/stores.ts";
import { until } from "../support/time/until.ts";

/**
 * What is left of a task whose runner was killed with SIGKILL at each boundary, after the next runner came.
 *
 * `executions` counts a claim that may start its handler; the handler's own account is in `starts`.
 */
const boundaries = [
  { at: "received", fence: 1, executions: 1, starts: 1, skipped: 0 },
  { at: "before:running", fence: 1, executions: 1, starts: 1, skipped: 0 },
  { at: "after:running", fence: 2, executions: 2, starts: 1, skipped: 0 },
  { at: "handler", fence: 2, executions: 2, starts: 2, skipped: 0 },
  { at: "before:completed", fence: 2, executions: 2, starts: 2, skipped: 0 },
  { at: "after:completed", fence: 1, executions: 1, starts: 1, skipped: 1 },
  { at: "before:ack", fence: 1, executions: 1, starts: 1, skipped: 1 },
  { at: "after:ack", fence: 1, executions: 1, starts: 1, skipped: 0 },
] as const;

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

describe.each(oneOfEach)("$kind: SIGKILL", ({ kind, here }) => {
  // All they do is wait for leases: together they wait once.
  test.skipIf(!here).concurrent.each(boundaries)(
    "at $at",
    async ({ at, fence, executions, starts, skipped }) => {
      const w = world(nats, kind, { ackWait: 6_000 });
      await using deps = await observer(w);
      const file = await recordFile();
      const env = { TEST_RECORD: file };
      const queue = { namespace: w.config.settings.namespace, agent: "recorder", lane: 0, generation: 1 };
      await deps.bus.ensure(queue);
      await submit(deps, { agent: "recorder", lanes: 1, id: "task", input: {} });

      if (at === "handler") holdHandlers(file);
      const first = pausedRunner(w, at, env);
      if (at === "handler") await until("it has begun", async () => notes(file).length === 1);
      else await first.says(/^AT /);
      await first.kill("SIGKILL");
      letHandlersGo(file);

      const second = pawl(w, ["run", "recorder", "--drain", "--json"], env);
      expect(await second.exited, second.text()).toBe(0);

      const task = (await deps.store.get("task"))?.task;
      expect(task).toMatchObject({
        state: "completed",
        fence,
        executions,
        redeliveriesSkipped: skipped,
        attempts: 0,
      });
      expect(task?.settled).toMatchObject([{ seq: 1, outcome: "completed" }]);
      expect(await deps.bus.state(queue)).toEqual({ pending: 0, inFlight: 0 });
      const heard = notes(file).map((note) => note.what);
      expect(heard.filter((what) => what === "start")).toHaveLength(starts);
      // Completed work is never repeated once it is recorded.
      if (at === "after:completed" || at.endsWith("ack")) expect(heard).toEqual(["start", "end"]);
    },
  );
});
