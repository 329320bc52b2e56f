/** A reconciliation in a process of its own, which says where it is: for the tests that kill it. */
import { configFrom } from "../../../functions/wiring/config.ts";
import { wire } from "../../../functions/wiring/wire.node.ts";
import { writers } from "../../../shared/reconcile/page/writers.ts";
import { reconcile } from "../../../shared/reconcile/reconcile.ts";

await using deps = await wire(configFrom(process.env), (_, event) => console.log(event));
let pages = 0;
const slow = {
  ...deps.store,
  pageSize: 500,
  changes: async (...args: Parameters<typeof deps.store.changes>) => {
    console.log(`page ${++pages}.`);
    return deps.store.changes(...args);
  },
};
const done = await reconcile({ ...deps, store: slow }, new AbortController().signal, {
  repair: false,
  writers,
  saveEvery: 1_000,
});
console.log(`done ${done?.listed.name}`);
