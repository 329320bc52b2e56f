import { job } from "./dispatch.ts";
import { gcpJob } from "./gcp.ts";

gcpJob(job);
