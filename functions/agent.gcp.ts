import { job } from "./agent.ts";
import { gcpJob } from "./wiring/gcp.ts";

gcpJob(job);
