/**
 * `pawl submit` that stops dead where PAWL_DRILL_PAUSE_AT says, as the drills' runner does. Says "SAID" and how the submit
 * ended.
 */
import "../../shared/values/older-node.ts";
import { configFrom } from "../../functions/wiring/config.ts";
import { wire } from "../../functions/wiring/wire.node.ts";
import { submit } from "../../shared/dispatch/submit.ts";
import { messageOf } from "../../shared/errors/errors.ts";
import type { JsonObject } from "../../shared/values/json.ts";
import { logger } from "../cli/output.ts";
import { pauseFrom } from "./pause.ts";

const [agent = "", id = "", input = "{}"] = process.argv.slice(2);
const pause = pauseFrom(process.env);
await using deps = await wire(configFrom(process.env), logger(true));
const paused = { ...deps, store: pause.store(deps.store), bus: pause.bus(deps.bus) };
const said = await submit(paused, { agent, id, lanes: 1, input: JSON.parse(input) as JsonObject }).then(
  ({ kind, stoppedBy }) => stoppedBy ?? kind,
  (error: unknown) => messageOf(error),
);
console.log(`SAID ${said}`);
