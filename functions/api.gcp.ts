import { answerApi } from "./api.ts";
import { gcpFunction, kept } from "./wiring/gcp.ts";

gcpFunction((request) => answerApi(request, process.env, kept));
