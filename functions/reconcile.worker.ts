import { job } from "./reconcile.ts";
import { workerJob } from "./wiring/worker.ts";

/** Of the 1,000 subrequests that an invocation may make: the rest is for keeping what was found out, and the report. */
const MOST_FETCHES = 400;

export default workerJob(job(MOST_FETCHES));
