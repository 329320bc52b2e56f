import { answerApi } from "./api.ts";
import { gcpFunction, kept } from "./wiring/gcp.ts";

// Google's front end adds who called it as the last; what stands before that, the caller has written.
const from = ({ headers }: Request) => headers.get("x-forwarded-for")?.split(",").at(-1)?.trim();

gcpFunction((request) =>
  answerApi(request, process.env, {
    open: (config, log) => kept(config, log, { name: "api" }),
    from: from(request),
  }),
);
