import { job } from "./dispatch.ts";
import { workerJob } from "./wiring/worker.ts";

export default workerJob(job);
