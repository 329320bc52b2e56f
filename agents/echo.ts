import * as z from "zod";
import { defineAgent } from "../shared/agent.ts";

/** Gives back what it got: for first steps and smoke tests. */
export default defineAgent({
  input: z.looseObject({ text: z.string() }),
  run: ({ input }) => ({ echo: input.text }),
});
