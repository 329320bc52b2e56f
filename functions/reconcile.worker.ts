import { job } from "./reconcile.ts";
import { workerJob } from "./worker.ts";

export default workerJob(job);
