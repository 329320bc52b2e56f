import { address, identityIn, text, type Variable } from "./variable.ts";

export const SAMPLERS = [
  "always_on",
  "always_off",
  "traceidratio",
  "parentbased_always_on",
  "parentbased_always_off",
  "parentbased_traceidratio",
] as const;

/** "a=b,c=d", with values encoded as in an address. Undefined where it is none. */
function pairs(list: string): Readonly<Record<string, string>> | undefined {
  const all: Record<string, string> = {};
  for (const one of list.split(",").map((pair) => pair.trim())) {
    if (one === "") continue;
    const [, name = "", value = ""] = /^([^=\s]+)\s*=\s*(.*)$/.exec(one) ?? [];
    const plain = decoded(value);
    if (name === "" || plain === undefined) return undefined;
    all[name] = plain;
  }
  return all;
}

function decoded(value: string): string | undefined {
  try {
    return decodeURIComponent(value);
  } catch {
    return undefined;
  }
}

/** As a request takes them: one that it refuses would fail at every send. */
function headers(list: string): Readonly<Record<string, string>> | undefined {
  const all = pairs(list);
  const isSound = ([name, value]: [string, string]) =>
    /^[\w!#$%&'*+.^`|~-]+$/.test(name) && /^[\x20-\x7e]*$/.test(value);
  return all && Object.entries(all).every(isSound) ? all : undefined;
}

const milliseconds = (value: string) => (/^[1-9]\d{0,5}$/.test(value) ? Number(value) : undefined);

const noIdentity = (name: string) => (url: string) =>
  identityIn(name, url, "A receiver of traces knows its sender by OTEL_EXPORTER_OTLP_HEADERS");

/** For traces. The names are OpenTelemetry's own: what is set for others holds here too. */
export const telemetryVariables = {
  OTEL_EXPORTER_OTLP_ENDPOINT: {
    form: "an address, such as http://127.0.0.1:4318",
    meaning:
      "Where traces are sent: a receiver of OTLP over HTTP, in JSON ([monitoring.md](monitoring.md#traces)). `/v1/traces` is added.",
    readBy: ["library"],
    unset: "no traces",
    read: address,
    wrong: noIdentity("OTEL_EXPORTER_OTLP_ENDPOINT"),
  },
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: {
    form: "an address, such as http://127.0.0.1:4318/v1/traces",
    meaning: "The same as a whole address, to which nothing is added.",
    readBy: ["library"],
    read: address,
    wrong: noIdentity("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"),
  },
  OTEL_EXPORTER_OTLP_HEADERS: {
    form: "`name=value,name=value`, values encoded as in an address",
    meaning: "What is sent along with traces: the receiver's key, say.",
    readBy: ["library"],
    secret: true,
    standIn: "authorization=x",
    read: headers,
  },
  OTEL_EXPORTER_OTLP_TIMEOUT: {
    form: "a number of milliseconds",
    meaning: "Longest wait for the receiver to take a batch of spans. No task waits for it.",
    readBy: ["library"],
    default: "10000",
    read: milliseconds,
  },
  OTEL_BSP_SCHEDULE_DELAY: {
    form: "a number of milliseconds",
    meaning: "Longest that a span waits for others to be sent along with. Whoever ends sends at once.",
    readBy: ["library"],
    default: "5000",
    read: milliseconds,
  },
  OTEL_SERVICE_NAME: {
    form: "a name",
    meaning: "What spans say of where they are from, as `service.name`.",
    readBy: ["library"],
    unset: "pawl, or service.name of OTEL_RESOURCE_ATTRIBUTES",
    read: text,
  },
  OTEL_RESOURCE_ATTRIBUTES: {
    form: "`name=value,name=value`, values encoded as in an address",
    meaning: "What else spans say of where they are from: `deployment.environment.name=staging`, say.",
    readBy: ["library"],
    unset: "none",
    read: pairs,
  },
  OTEL_TRACES_SAMPLER: {
    form: `one of ${SAMPLERS.join(", ")}`,
    meaning:
      "Which tasks are traced. `parentbased_`: whoever submits with a `traceparent` decides for its own trace.",
    readBy: ["library"],
    default: "parentbased_always_on",
    read: (name) => SAMPLERS.find((one) => one === name),
  },
  OTEL_TRACES_SAMPLER_ARG: {
    form: "a share from 0 to 1",
    meaning:
      "How many of them, for the samplers that end in `traceidratio`: chosen by the trace's id, so that all processes choose alike.",
    readBy: ["library"],
    default: "1",
    read: (share) => (/^(0(\.\d+)?|1(\.0+)?)$/.test(share) ? Number(share) : undefined),
  },
  OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT: {
    form: "true or false",
    meaning:
      "Whether spans say what models were asked and answered, and what errors say. Secrets are taken out, and at most 8,000 characters of each are told.",
    readBy: ["library"],
    default: "false",
    read: (value) => (/^(true|false)$/i.test(value) ? /^true$/i.test(value) : undefined),
  },
  TRACEPARENT: {
    form: "`00-<trace>-<span>-<flags>`, as https://www.w3.org/TR/trace-context has it",
    meaning: "The trace that `pawl submit` was called in: its task becomes part of it.",
    readBy: ["command"],
    read: text,
  },
} as const satisfies Record<string, Variable>;
