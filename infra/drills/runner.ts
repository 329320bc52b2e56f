/**
 * `pawl run <agent>` that says "AT <boundary>" and stops dead at PAWL_DRILL_PAUSE_AT, once at each: for the demo, for drills,
 * and for tests that kill and freeze runners. With PAWL_DRILL_RESUME it goes on when it gets SIGUSR2. With PAWL_TIME_LIMIT it is
 * one invocation of a function, which ends when its time is over or nothing is left to do.
 */
import "../../shared/values/older-node.ts";
import { configFrom } from "../../functions/wiring/config.ts";
import { modelOf } from "../../functions/wiring/model.ts";
import { timeBudget } from "../../functions/wiring/run.ts";
import { wire } from "../../functions/wiring/wire.node.ts";
import { serve } from "../../shared/runner/serve.ts";
import { readVariable } from "../../shared/settings/variables.ts";
import { agentsFolder, loadAgent } from "../agents.ts";
import { logger } from "../cli/output.ts";
import { sleepingClock } from "./faults/clock.ts";
import { pauseFrom } from "./pause.ts";

const [name = ""] = process.argv.slice(2);
const pause = pauseFrom(process.env);
const isSleepy = readVariable(process.env, "PAWL_DRILL_CLOCK") === "sleeps";

const told = new AbortController();
process.on("SIGTERM", () => told.abort(new Error("told to stop")));
const agent = await loadAgent(name, agentsFolder());
const config = configFrom(process.env);
await using deps = await wire(config, logger(true));
const { timeLimit } = config;
const budget = timeLimit === undefined ? undefined : timeBudget(config, timeLimit, timeLimit);
const stop = budget ? AbortSignal.any([told.signal, budget.stop]) : told.signal;
await serve(
  {
    ...deps,
    ...modelOf(config, deps.nc),
    ...(budget && { invocation: budget.invocation }),
    ...(isSleepy && { clock: sleepingClock(deps.clock) }),
    store: pause.store(deps.store),
    bus: pause.bus(deps.bus),
  },
  { name, agent, mode: budget ? "idle" : "forever", stop },
);
