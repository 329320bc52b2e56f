import { agents } from "pawl:agents";
import { reconcile } from "../shared/journey/reconcile.ts";
import type { Job } from "./run.ts";

/** Counts every queue's messages against what became of them. */
export const job: Job = {
  name: "reconcile",
  run: async (deps, stop) => ({ queues: await reconcile(deps, agents, stop) }),
};
