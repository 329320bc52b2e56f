/**
 * `pawl run <agent>` that says "AT <boundary>" and stops dead at PAWL_DRILL_PAUSE_AT, once: for the demo and for tests
 * that kill and freeze runners. With PAWL_DRILL_RESUME it goes on when it gets SIGUSR2.
 */
import { configFrom } from "../../functions/wiring/config.ts";
import { modelOf } from "../../functions/wiring/model.ts";
import { wire } from "../../functions/wiring/wire.node.ts";
import { serve } from "../../shared/runner/serve.ts";
import { readVariable } from "../../shared/settings/variables.ts";
import { agentsFolder, loadAgent } from "../agents.ts";
import { logger } from "../cli/output.ts";
import { pausing } from "./pause.ts";

const [name = ""] = process.argv.slice(2);
const pauseAt = readVariable(process.env, "PAWL_DRILL_PAUSE_AT");
const isResumed = readVariable(process.env, "PAWL_DRILL_RESUME") !== undefined;

let passed = false;
const pause = pausing(async (boundary) => {
  if (boundary !== pauseAt || passed) return;
  passed = true;
  const resumed = new Promise((resolve) => process.once("SIGUSR2", resolve));
  console.log(`AT ${boundary}`);
  if (isResumed) await resumed;
  else await new Promise(() => setInterval(() => {}, 1000));
});

const stop = new AbortController();
process.on("SIGTERM", () => stop.abort(new Error("told to stop")));
const agent = await loadAgent(name, agentsFolder());
const config = configFrom(process.env);
await using deps = await wire(config, logger(true));
await serve(
  {
    ...deps,
    ...modelOf(config),
    store: pause.store(deps.store),
    bus: pause.bus(deps.bus),
  },
  { name, agent, mode: "forever", stop: stop.signal },
);
