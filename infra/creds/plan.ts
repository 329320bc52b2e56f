import { familyOf } from "../../shared/definition.ts";
import { PawlError } from "../../shared/errors/errors.ts";
import type { Settings } from "../../shared/settings/settings.ts";
import {
  agentBucket,
  bucketName,
  confinedPrefix,
  consumerName,
  inboxPrefix,
  streamName,
} from "../../shared/task/names.ts";
import type { KnownAgent } from "../agents.ts";
import { OWN_FUNCTIONS } from "../build/targets.ts";

/** One user at NATS, and what it may publish and subscribe to inside its account. */
export interface Identity {
  readonly name: string;
  readonly publish: readonly string[];
  readonly denied: readonly string[];
  readonly subscribe: readonly string[];
  /** It answers what it is asked. */
  readonly answers: boolean;
}

/** To one question, and for how long: whoever listens to a turn asks again every few seconds. */
export const ANSWERS = { most: 300, seconds: 60 } as const;

/** Something of the core account that an agent's account may ask for. */
export interface Service {
  /** As the core account has it. */
  readonly subject: string;
  /** As the agent's has it. */
  readonly local: string;
  /** More than one answer may come, or late. */
  readonly isStream?: boolean;
}

/** An agent's account: it has no JetStream, and of the core's what is listed. */
export interface AgentAccount {
  readonly name: string;
  readonly agent: string;
  readonly identity: Identity;
  readonly imports: readonly Service[];
  /** What the core may ask of it: whether it holds a claim, and what a model says in a turn of that. */
  readonly exports: readonly Pick<Service, "subject" | "isStream">[];
}

export interface Plan {
  /** The account that has all streams and buckets, and Pawl's own functions. */
  readonly core: { readonly name: string; readonly identities: readonly Identity[] };
  readonly agents: readonly AgentAccount[];
}

/** Asked by each identity of itself: the server says what it may do. Nobody learns anything of another. */
export const RIGHTS = "$SYS.REQ.USER.INFO";

type Known = Pick<KnownAgent, "name" | "lanes" | "children">;

/** No function ever does this: an operator who has to says so to the server, with an identity of their own. */
const NEVER = [
  "$JS.API.STREAM.DELETE.>",
  "$JS.API.STREAM.SNAPSHOT.>",
  "$JS.API.STREAM.RESTORE.>",
  "$JS.API.ACCOUNT.>",
  "$JS.API.META.>",
];

/** Pawl's own functions, and whoever operates them. */
const CORE: readonly string[] = [...OWN_FUNCTIONS, "operator"];

/** An agent of such a name would be given its credentials, or it the agent's. */
export const isCoreIdentity = (name: string): boolean => CORE.includes(name);

/** Who may do what: everybody no more than they have to. `hasKv`: documents are in NATS KV. */
export function planOf(settings: Settings, known: readonly Known[], hasKv: boolean): Plan {
  const { namespace } = settings;
  const taken = known.find(({ name }) => isCoreIdentity(name));
  if (taken)
    throw new PawlError(
      "agent_name_invalid",
      `An agent is named ${taken.name}, as an identity of Pawl's own: give it another name`,
    );
  const buckets = hasKv
    ? [bucketName(settings), ...known.map((agent) => agentBucket(settings, agent.name))]
    : [];
  const core = (name: string): Identity => ({
    name,
    publish: [
      "$JS.API.>",
      "$JS.ACK.>",
      ...buckets.map((bucket) => `$KV.${bucket}.>`),
      `${namespace}.tasks.>`,
      `${namespace}.events.>`,
      `${namespace}.holders.>`,
      RIGHTS,
      ...(name === "api" ? [`${namespace}.deltas.>`] : []),
    ],
    denied: name === "operator" ? [] : NEVER,
    subscribe: [
      `${inboxPrefix(settings, name)}.>`,
      ...(name === "api" || name === "operator" ? [`${namespace}.events.>`] : []),
    ],
    answers: false,
  });
  return {
    core: { name: namespace.toUpperCase(), identities: CORE.map(core) },
    agents: known.map((agent) => accountOf(settings, agent, known, hasKv)),
  };
}

function accountOf(
  settings: Settings,
  { name }: Known,
  known: readonly Known[],
  hasKv: boolean,
): AgentAccount {
  const { namespace } = settings;
  const family = familyOf(name, known).flatMap((one) => known.find((agent) => agent.name === one) ?? []);
  const imports = family.flatMap((one) => servicesOf(settings, one, one.name === name, hasKv));
  const holders = `${namespace}.holders.${name}.*`;
  const deltas = `${namespace}.deltas.${name}.*`;
  return {
    name: `${namespace.toUpperCase()}_${name}`,
    agent: name,
    imports,
    exports: [{ subject: holders }, { subject: deltas, isStream: true }],
    identity: {
      name,
      publish: [...imports.map(({ local }) => local), holders, RIGHTS],
      denied: [],
      subscribe: [`${inboxPrefix(settings, name)}.>`, holders, deltas],
      answers: true,
    },
  };
}

/** What an agent has to reach of its own, or of a relative: to submit there, to read what became of it, to wake it. */
function servicesOf(
  settings: Settings,
  { name, lanes }: Known,
  isOwn: boolean,
  hasKv: boolean,
): readonly Service[] {
  const { namespace, generation } = settings;
  const prefix = confinedPrefix(settings);
  const runner = consumerName(settings);
  const api = (what: string, isStream = false): Service => ({
    subject: `$JS.API.${what}`,
    local: `${prefix}.${what}`,
    ...(isStream && { isStream }),
  });
  const plain = (subject: string): Service => ({ subject, local: subject });
  const streams = Array.from({ length: lanes }, (_, lane) =>
    streamName({ namespace, agent: name, lane, generation }),
  );
  const queues = streams.flatMap((stream) => [
    api(`STREAM.INFO.${stream}`),
    api(`STREAM.MSG.GET.${stream}`),
    ...(isOwn
      ? [
          api(`CONSUMER.INFO.${stream}.${runner}`),
          api(`CONSUMER.MSG.NEXT.${stream}.${runner}`, true),
          plain(`$JS.ACK.${stream}.${runner}.>`),
        ]
      : []),
  ]);
  const bucket = agentBucket(settings, name);
  // The client puts the prefix before what it writes, too.
  const write = (keys: string): Service => ({
    subject: `$KV.${bucket}.${keys}`,
    local: `${prefix}.$KV.${bucket}.${keys}`,
  });
  const documents = [
    api(`STREAM.INFO.KV_${bucket}`),
    api(`STREAM.MSG.GET.KV_${bucket}`),
    // One by one: what an account exports must not overlap.
    ...["task.*", "due.*.*.*", "part.*.*"].map(write),
    ...(isOwn ? ["journal.*", "lease.*", "record.*", "text.*"].map(write) : []),
  ];
  return [
    ...(hasKv ? documents : []),
    ...queues,
    plain(`${namespace}.tasks.${name}.>`),
    plain(`${namespace}.events.${name}.>`),
  ];
}
