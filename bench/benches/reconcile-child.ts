/** In a process of its own, as a function is: a whole first report, or only the reading of all documents. */
import { configFrom } from "../../functions/wiring/config.ts";
import { wire } from "../../functions/wiring/wire.node.ts";
import { writers } from "../../shared/reconcile/page/writers.ts";
import { reconcile } from "../../shared/reconcile/reconcile.ts";
import { timed } from "../rounds.ts";

const [what] = process.argv.slice(2);
await using deps = await wire(configFrom(process.env), () => {});
const rest = process.memoryUsage.rss();
let documents = 0;
const read = async () => {
  for (let cursor: string | undefined, isLast = false; !isLast; ) {
    const page = await deps.store.changes(cursor, deps.store.pageSize);
    ({ cursor, isLast } = page);
    documents += page.documents.length;
  }
};
const report = async () => {
  const done = await reconcile(deps, new AbortController().signal, { repair: true, writers });
  if (!done) throw new Error("It ran out of time");
  const { named } = done.report.findings;
  if (named.length > 0) throw new Error(`It found ${named.length}, and nothing is wrong`);
  documents = done.documents;
};
const ms = await timed(what === "read" ? read : report);
console.log(JSON.stringify({ ms, documents, mb: (process.resourceUsage().maxRSS * 1024 - rest) / 2 ** 20 }));
