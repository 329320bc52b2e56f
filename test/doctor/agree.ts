/**
 * Whether the doctor and a nats-server agree on what it takes: npx node test/doctor/agree.ts [--server PATH] [--runs N] [--seed N]
 */
import { parseArgs } from "node:util";
import { connect } from "@nats-io/transport-node";
import fc from "fast-check";
import { startNats } from "../../infra/local/nats-server.ts";
import { configurations } from "./configs.ts";
import { disagreements } from "./verdict.ts";

const { values } = parseArgs({
  options: {
    server: { type: "string" },
    runs: { type: "string", default: "2000" },
    seed: { type: "string", default: "1" },
  },
});
await using nats = await startNats(values.server ? { binary: values.server } : {});
const nc = await connect({ servers: nats.url });
const made = fc.sample(configurations, { seed: Number(values.seed), numRuns: Number(values.runs) });
const { accepted, wrong } = await disagreements(nc, made);
console.log(
  `nats-server ${nc.info?.version}: ${accepted} of ${made.length} accepted, ${wrong.length} times the doctor says otherwise`,
);
for (const one of wrong.slice(0, 20)) console.log(JSON.stringify(one));
process.exitCode = wrong.length > 0 ? 1 : 0;
await nc.close();
