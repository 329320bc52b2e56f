import { answerApi } from "./api.ts";
import { wire } from "./wiring/wire.worker.ts";
import { type Context, stringsOf } from "./wiring/worker.ts";

export default {
  async fetch(request: Request, env: object, context: Context): Promise<Response> {
    await using opened = new AsyncDisposableStack();
    const kept: Promise<unknown>[] = [];
    const answer = await answerApi(request, stringsOf(env), {
      open: async (config, log) => {
        const wired = opened.use(await wire(config, log, { name: "api" }));
        // Nobody waits for what is told of a task: it is sent after the answer.
        if (wired.trace) kept.push(Promise.resolve());
        return wired;
      },
      from: request.headers.get("cf-connecting-ip") ?? undefined,
      keep: (until) => void kept.push(until),
    });
    // A stream outlives this function; its connection is closed when it ends.
    if (kept.length > 0) {
      const rest = opened.move();
      context.waitUntil(Promise.allSettled(kept).then(() => rest.disposeAsync()));
    }
    return answer;
  },
};
