import { answerApi } from "./api.ts";
import { configFrom } from "./config.ts";
import { gcpFunction, kept } from "./gcp.ts";

gcpFunction((request) => answerApi(request, (log) => kept(configFrom(process.env), log)));
