import { job } from "./dispatch.ts";
import { gcpJob } from "./wiring/gcp.ts";

gcpJob(job);
