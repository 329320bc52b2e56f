import { answerApi } from "./api.ts";
import { configFrom } from "./config.ts";
import { wire } from "./wire.worker.ts";
import { stringsOf } from "./worker.ts";

export default {
  async fetch(request: Request, env: object): Promise<Response> {
    await using opened = new AsyncDisposableStack();
    return await answerApi(request, async (log) => opened.use(await wire(configFrom(stringsOf(env)), log)));
  },
};
