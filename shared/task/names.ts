import { PawlError } from "../errors/errors.ts";
import { mixed } from "../values/hashes.ts";

/** Safe both as one NATS subject token and as a Firestore document id, which reserves `__…__` for itself. */
const TASK_ID = /^(?!__.*__$)[A-Za-z0-9_-]{1,128}$/;
/** No underscore and no dot: both separate the parts of stream names and subjects. */
const AGENT = /^[a-z][a-z0-9-]{0,62}$/;
const NAMESPACE = /^[a-z][a-z0-9-]{0,31}$/;

export function isTaskId(id: string): boolean {
  return TASK_ID.test(id);
}

export function checkTaskId(id: string): string {
  if (isTaskId(id)) return id;
  const shown = id.length > 140 ? `${id.slice(0, 140)}… (${id.length} characters)` : id;
  throw new PawlError(
    "task_id_invalid",
    `Task id ${JSON.stringify(shown)} can't be used. Use 1 to 128 of the characters A-Z a-z 0-9 _ - (and not __…__, which Firestore reserves)`,
  );
}

/** As the ids of children, and of messages that belong to no task: whoever runs an agent makes them up. */
export function isMadeUp(id: string): boolean {
  return /^(c|stray)-/.test(id);
}

export function isAgentName(name: string): boolean {
  return AGENT.test(name);
}

export function checkAgentName(name: string): string {
  if (isAgentName(name)) return name;
  throw new PawlError(
    "agent_name_invalid",
    `Agent name ${JSON.stringify(name.slice(0, 140))} can't be used. Start with a letter, then a-z 0-9 - (63 at most)`,
  );
}

export function checkNamespace(namespace: string): string {
  if (NAMESPACE.test(namespace)) return namespace;
  throw new PawlError(
    "setting_invalid",
    `PAWL_NAMESPACE is ${JSON.stringify(namespace)}. Start with a letter, then a-z 0-9 - (32 at most)`,
  );
}

/** One queue is one stream with one consumer: an agent's lane, in one generation. */
export interface Queue {
  readonly namespace: string;
  readonly agent: string;
  readonly lane: number;
  /** A stream re-created under its old name honours acks from its former life, so a new one gets a new name. */
  readonly generation: number;
}

export function streamName(queue: Queue): string {
  return `${queue.namespace.toUpperCase()}_${queue.agent}_${queue.lane}_g${queue.generation}`;
}

/** The queue whose stream has this name; none if it is no queue of this namespace. */
export function queueNamed(stream: string, namespace: string): Queue | undefined {
  const [, agent, lane, generation] =
    /^_([a-z][a-z0-9-]*)_(\d+)_g(\d+)$/.exec(
      stream.startsWith(namespace.toUpperCase()) ? stream.slice(namespace.length) : "",
    ) ?? [];
  if (!agent) return undefined;
  return { namespace, agent, lane: Number(lane), generation: Number(generation) };
}

/** With the namespace in it: what the server says of consumers is told apart by their names. */
export function consumerName({ namespace }: Pick<Queue, "namespace">): string {
  return `${namespace}-runner`;
}

/** The stream that keeps what the server says when it gives up on a message. */
export function advisoriesName({ namespace }: Pick<Queue, "namespace">): string {
  return `${namespace.toUpperCase()}_advisories`;
}

/** The bucket of a namespace: of all documents, or of Pawl's own records and texts where each agent has one too. */
export function bucketName({ namespace }: Pick<Queue, "namespace">): string {
  return `${namespace}-tasks`;
}

/** The bucket of one agent's documents, where each has its own. Neither name has an underscore. */
export function agentBucket({ namespace }: Pick<Queue, "namespace">, agent: string): string {
  return `${namespace}_${agent}`;
}

/** The agent whose bucket this is the stream of; none if it is no agent's of this namespace. */
export function agentOfBucket(stream: string, { namespace }: Pick<Queue, "namespace">): string | undefined {
  const prefix = `KV_${namespace}_`;
  const agent = stream.startsWith(prefix) ? stream.slice(prefix.length) : "";
  return isAgentName(agent) ? agent : undefined;
}

/** Before the API of JetStream, as an identity that is confined to an agent reaches what it may use of it. */
export function confinedPrefix({ namespace }: Pick<Queue, "namespace">): string {
  return `${namespace}.js`;
}

/** Where an identity's answers come to, and nobody else's. */
export function inboxPrefix({ namespace }: Pick<Queue, "namespace">, identity: string): string {
  return `_INBOX_${namespace}_${identity}`;
}

export function subjectPrefix(queue: Queue): string {
  return `${queue.namespace}.tasks.${queue.agent}.${queue.lane}.g${queue.generation}.`;
}

/** Tasks of one ordering key always share a lane, and so stay in order. */
export function laneOf(key: string, lanes: number): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < key.length; i++) hash = Math.imul(hash ^ key.charCodeAt(i), 0x01000193);
  return (hash >>> 0) % lanes;
}

/** A claim's token. It begins with where its holder can be asked after it, which is one place for all claims of a runner. */
export function holderToken(runner: string, unique: string): string {
  const [a, b] = [mixed(runner, 0x9e3779b9), mixed(runner, 0x85ebca6b)];
  return `${a.toString(36)}${b.toString(36)}_${unique}`;
}

/** Where to ask after a claim: in its token, of which the rest is what to ask. */
export function holderSubject(
  { namespace }: Pick<Queue, "namespace">,
  { agent, token }: { readonly agent: string; readonly token: string },
): string {
  return `${namespace}.holders.${agent}.${token.split("_")[0]}`;
}

/** Where to ask a claim's holder for what its turns say, as they say it. */
export function deltaSubject(
  { namespace }: Pick<Queue, "namespace">,
  { agent, token }: { readonly agent: string; readonly token: string },
): string {
  return `${namespace}.deltas.${agent}.${token.split("_")[0]}`;
}
