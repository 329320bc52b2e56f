import { job } from "./agent.ts";
import { gcpJob } from "./gcp.ts";

gcpJob(job);
