import { type Config, storeIdentity } from "../../../functions/wiring/config.ts";
import { type Wired, wire } from "../../../functions/wiring/wire.node.ts";
import { jetstreamBus } from "../../../shared/adapters/jetstream/jetstream.ts";
import { defaults, makeSettings } from "../../../shared/settings/settings.ts";

/**
 * For the drill itself, which looks on while processes with short leases are killed: nothing that it asks is cut short. What
 * it makes, and what it compares with, is as the drill's settings want it.
 */
export async function lookOn(config: Config): Promise<Wired> {
  const { settings } = config;
  const { requestTimeout } = defaults;
  const calm = makeSettings({
    ...settings,
    ackWait: Math.max(settings.ackWait, defaults.ackWait),
    requestTimeout,
  });
  const deps = await wire({ ...config, settings: calm }, () => {});
  const bus = await jetstreamBus(deps.nc, { ...settings, requestTimeout }, storeIdentity(config));
  return Object.assign(deps, { settings, bus });
}
