import { job } from "./dispatch.ts";
import { workerJob } from "./worker.ts";

export default workerJob(job);
