import { answerApi } from "./api.ts";
import { gcpFunction, kept } from "./gcp.ts";

gcpFunction((request) => answerApi(request, process.env, kept));
