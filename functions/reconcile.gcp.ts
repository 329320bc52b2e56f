import { gcpJob } from "./gcp.ts";
import { job } from "./reconcile.ts";

gcpJob(job());
