import { job } from "./agent.ts";
import { workerJob } from "./wiring/worker.ts";

export default workerJob(job);
