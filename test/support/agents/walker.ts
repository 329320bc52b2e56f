import { defineAgent } from "../../../shared/agent.ts";

/** Goes step by step, and tells a server of each one: runs on every platform. */
export default defineAgent({
  async run({ input, step, signal, id }) {
    const {
      url,
      steps = 1,
      ms = 0,
      deaf = false,
    } = input as {
      url: string;
      steps?: number;
      ms?: number;
      deaf?: boolean;
    };
    const pause = () => new Promise((resolve) => setTimeout(resolve, ms));
    let sum = 0;
    for (let i = 0; i < steps; i++) {
      sum += await step("walk", async () => {
        const told = await fetch(`${url}/${id}/${i}`, { method: "POST" });
        await told.text();
        await pause();
        return i;
      });
      while (deaf) await pause();
      signal.throwIfAborted();
    }
    return { sum };
  },
});
