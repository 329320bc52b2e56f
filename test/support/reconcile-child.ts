/** A reconciliation in a process of its own, which says where it is: for the tests that kill it. */
import { configFrom } from "../../functions/config.ts";
import { wire } from "../../functions/wire.node.ts";
import { reconcile } from "../../shared/journey/reconcile-report.ts";
import { writers } from "../../shared/report/writers.ts";

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
