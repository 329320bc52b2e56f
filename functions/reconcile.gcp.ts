import { job } from "./reconcile.ts";
import { gcpJob } from "./wiring/gcp.ts";

gcpJob(job());
