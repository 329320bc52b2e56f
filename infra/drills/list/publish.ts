import { setTimeout as sleep } from "node:timers/promises";
import { jetstreamManager } from "@nats-io/jetstream";
import { headers } from "@nats-io/nats-core";
import { ensureQueue, queueOf } from "../../../shared/dispatch/dispatch.ts";
import { dispatchDue } from "../../../shared/dispatch/sweep.ts";
import { streamName, subjectPrefix } from "../../../shared/task/names.ts";
import type { Act } from "../agents/lib/errand.ts";
import type { Drill } from "../drill.ts";
import { cuttingProxy } from "../faults/proxy.ts";
import type { Actor } from "../stage/actor.ts";
import { AGENT, type Stage } from "../stage/stage.ts";

const ONE: readonly Act[] = [{ do: "effect", name: "post", how: "blind" }];
const WINDOW = 2_000;
const queueIn = ({ deps }: Stage) => queueOf(deps, { agent: AGENT, lane: 0 });
const jsmOf = ({ deps }: Stage) => jetstreamManager(deps.nc, { checkAPI: false });

async function submitter(stage: Stage, pauses: string, env: Record<string, string> = {}): Promise<Actor> {
  const id = `drill-${crypto.randomUUID().slice(0, 8)}`;
  stage.expect(id, "completed");
  const pausing = { PAWL_DRILL_PAUSE_AT: pauses, PAWL_DRILL_RESUME: "1" };
  const args = [AGENT, id, JSON.stringify(stage.input(ONE))];
  return stage.start({ name: "submitter", script: "submitter", args, env: { ...env, ...pausing } });
}

export const publish: readonly Drill[] = [
  {
    name: "publish-timed-out",
    what: "A publish is stored and its answer lost; the task is done before the submitter tries again, past the window",
    fault: "answers lost",
    about: "explained",
    needs: ["proxy"],
    env: { PAWL_DUPLICATE_WINDOW: "200ms" },
    seconds: 9,
    run: async (stage) => {
      await using proxy = await cuttingProxy(stage.config.nats.url);
      const one = await submitter(stage, "after:dispatched", { NATS_URL: proxy.url });
      await one.stoppedAt("after:dispatched");
      proxy.swallowReplies(true);
      one.resume();
      await one.says(/"publish\.retry"/);
      stage.tell("the message was published, and the answer did not come");
      await stage.runner("A");
      await stage.settled();
      proxy.swallowReplies(false);
      const said = await one.says(/^SAID/);
      stage.tell(`the task is done; then the submitter tried again: ${said.slice(5)}`);
      await stage.settled();
    },
  },
  {
    name: "rollback-failed",
    what: "A publish is refused, and the dispatcher dies before it can take the dispatch back: a sweep dispatches it",
    fault: "process killed",
    about: "nothing lost",
    needs: ["server"],
    seconds: 7,
    run: async (stage) => {
      const queue = queueIn(stage);
      const one = await submitter(stage, "after:dispatched,before:scheduled");
      await one.stoppedAt("after:dispatched");
      // A queue without room refuses for certain.
      const jsm = await jsmOf(stage);
      await jsm.streams.update(streamName(queue), { max_bytes: 1 });
      one.resume();
      await one.stoppedAt("before:scheduled");
      await one.kill();
      stage.tell("the publish was refused; the submitter is killed before it takes the dispatch back");
      await ensureQueue(stage.deps, queue, "correct");
      await stage.runner("A");
      const swept = await dispatchDue(stage.deps, AGENT, undefined, { dispatchTimeout: 0 });
      stage.tell(`the dispatch function found ${swept} task without a message`);
    },
  },
  {
    name: "window-boundary",
    what: "The same message is published inside the window, past it, and after the task is done: each time a layer stops it",
    fault: "published by hand",
    about: "explained",
    needs: ["words"],
    env: { PAWL_DUPLICATE_WINDOW: `${WINDOW}ms` },
    seconds: 9,
    run: async (stage) => {
      const jsm = await jsmOf(stage);
      const stream = streamName(queueIn(stage));
      const id = await stage.submit(ONE);
      const first = await jsm.streams.getMessage(stream, { seq: 1 });
      if (!first) throw new Error("The message is not there");
      const own = headers();
      for (const name of first.header.keys()) own.set(name, first.header.get(name));
      const stored = first.time.getTime();
      const again = async (when: string, isDone = false) => {
        const sent = Date.now() - stored;
        const answer = await stage.deps.nc.request(first.subject, first.data, {
          headers: own,
          timeout: 5_000,
        });
        const { duplicate, error } = answer.json<{ duplicate?: boolean; error?: object }>();
        const by = duplicate
          ? "the window"
          : error
            ? "the occupied subject"
            : isDone
              ? "the document"
              : "nothing";
        stage.tell(`published again ${when}: stopped by ${by}`);
        // What was under way as the window ended may be stopped by either.
        const inside = Date.now() - stored < WINDOW && "the window";
        const wanted = inside || (sent > WINDOW && (isDone ? "the document" : "the occupied subject"));
        if (wanted && by !== wanted)
          stage.claim({
            broken: "explained",
            why: `published again ${when}, it was stopped by ${by}, not by ${wanted}`,
          });
      };
      await again("at once");
      const past = stored + WINDOW + 300;
      await sleep(past - 800 - Date.now());
      await again("shortly before the window ends");
      await sleep(past - Date.now());
      await again("shortly after it has ended");
      await stage.runner("A");
      await stage.until("it is done", async () => (await stage.task(id)).state === "completed");
      await sleep(WINDOW + 300);
      await again("when the task is done and the window over", true);
      await stage.until("all are settled", async () => (await stage.left()) === 0);
    },
  },
  {
    name: "poison-message",
    what: "A message that is no task lies before one that is: it becomes a dead letter, and the lane goes on",
    fault: "published by hand",
    about: "explained",
    needs: ["words"],
    seconds: 5,
    run: async (stage) => {
      await stage.deps.nc.request(`${subjectPrefix(queueIn(stage))}poison`, "{ this is no task", {
        timeout: 5_000,
      });
      stage.tell("published by hand: bytes that are no task");
      await stage.submit(ONE);
      await stage.runner("A");
    },
  },
];
