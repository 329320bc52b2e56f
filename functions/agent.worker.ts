import { job } from "./agent.ts";
import { workerJob } from "./worker.ts";

export default workerJob(job);
