import { storeIdentity } from "../../functions/wiring/config.ts";
import type { Wired } from "../../functions/wiring/wire.node.ts";
import { jetstreamBus } from "../../shared/adapters/jetstream/jetstream.ts";
import type { Bus } from "../../shared/ports/bus.ts";
import type { TaskStore } from "../../shared/ports/store.ts";
import { defaults } from "../../shared/settings/settings.ts";
import { type Logged, type TestWorld, wired, worldOf } from "./servers/stores.ts";
import { patiently } from "./time/until.ts";

const PATIENT = 15_000;

/** The same world for those who hold no lease, so that a slow answer costs them nothing. */
export function calm({ nats, config }: TestWorld): TestWorld {
  const { ackWait } = defaults;
  return worldOf(nats, { ...config, settings: { ...config.settings, ackWait, requestTimeout: PATIENT } });
}

/** For the test itself, which looks on while processes with short leases are killed: nothing that it asks is cut short. */
export async function observer(w: TestWorld): Promise<Wired & { logged: Logged[] }> {
  const { settings } = w.config;
  const deps = await wired(calm(w).config);
  // The queues are made as the processes under test want them.
  const bus = await jetstreamBus(deps.nc, { ...settings, requestTimeout: PATIENT }, storeIdentity(w.config));
  return Object.assign(deps, { settings, store: patientStore(deps.store), bus: patientBus(bus) });
}

function patientStore(store: TaskStore): TaskStore {
  return {
    ...store,
    get: (...args) => patiently(() => store.get(...args)),
    getMany: (...args) => patiently(() => store.getMany(...args)),
    list: (...args) => patiently(() => store.list(...args)),
    position: () => patiently(() => store.position()),
    changes: (...args) => patiently(() => store.changes(...args)),
    getHead: (...args) => patiently(() => store.getHead(...args)),
    getPart: (...args) => patiently(() => store.getPart(...args)),
    getRecord: (...args) => patiently(() => store.getRecord(...args)),
    getText: (...args) => patiently(() => store.getText(...args)),
  };
}

function patientBus(bus: Bus): Bus {
  return {
    ...bus,
    ensure: (...args) => patiently(() => bus.ensure(...args)),
    lookup: (...args) => patiently(() => bus.lookup(...args)),
    state: (...args) => patiently(() => bus.state(...args)),
    inspect: (...args) => patiently(() => bus.inspect(...args)),
  };
}
