import type { NatsConnection } from "@nats-io/nats-core";
import { anthropic } from "../../shared/adapters/anthropic.ts";
import { deltaHolder } from "../../shared/adapters/jetstream/delta-holder.ts";
import type { DeltaHolder } from "../../shared/ports/deltas.ts";
import type { Deps } from "../../shared/ports/deps.ts";
import type { Settings } from "../../shared/settings/settings.ts";
import type { Config } from "./config.ts";

/** A connection may outlive an invocation, and is asked at one place. */
const holders = new WeakMap<NatsConnection, DeltaHolder>();

function holderOf(nc: NatsConnection, settings: Settings): DeltaHolder {
  const holder = holders.get(nc) ?? deltaHolder(nc, settings);
  holders.set(nc, holder);
  return holder;
}

/** The model, where there is a key for one, and who tells what it says. Only what runs handlers needs it: it is a third of a bundle. */
export function modelOf(
  { model, settings }: Pick<Config, "model" | "settings">,
  nc: NatsConnection,
): Pick<Deps, "model" | "tells"> {
  return model ? { model: anthropic(model), tells: holderOf(nc, settings) } : {};
}
