import type { Config } from "../../../functions/wiring/config.ts";
import { consumerConfig, streamConfig } from "../../../shared/adapters/jetstream/definition.ts";
import { PATIENCE } from "../../../shared/retry/patience.ts";
import { timing } from "../../../shared/settings/settings.ts";
import type { VariableName } from "../../../shared/settings/variables.ts";
import { consumerName } from "../../../shared/task/names.ts";
import type { Contract } from "../contract.ts";
import type { Finding } from "../rule.ts";
import type { Live } from "./live.ts";

/**
 * How Pawl sets its queues up and uses them, by these settings: the rules for anybody's queue hold for its own. Delayed naks
 * are not said: an agent asks for them by `order: "strict"`, and means that its lane waits.
 */
export function ownContract(
  { settings, timeLimit }: Pick<Config, "settings" | "timeLimit">,
  { nats, sync, isCaptured }: Partial<Pick<Live, "nats" | "sync" | "isCaptured">> = {},
): Contract {
  const { namespace, generation } = settings;
  return {
    name: "the settings",
    stream: streamConfig({ namespace, agent: "any", lane: 0, generation }, settings),
    consumer: { durable_name: consumerName(settings), ...consumerConfig(settings) },
    application: {
      heartbeat: timing(settings).beatEvery,
      workers: 1,
      acks: ["ack", "in_progress"],
      record_ttl: settings.retention,
      publish_retry: PATIENCE,
      redrive_id: "new",
      rolls_back: "when_definite",
      attempts_per_failure: 1,
      hands_off: true,
      ...(timeLimit !== undefined && { platform_limit: timeLimit }),
      ...(sync && { sync }),
      ...(isCaptured !== undefined && { dead_letters: isCaptured ? "stream" : "none" }),
    },
    ...(nats && { server: nats.version }),
    unknown: [],
  };
}

/** Which setting says a field of it. */
const VARIABLES = {
  ack_wait: "PAWL_ACK_WAIT",
  duplicate_window: "PAWL_DUPLICATE_WINDOW",
  max_deliver: "PAWL_MAX_DELIVER",
  num_replicas: "PAWL_REPLICAS",
  record_ttl: "PAWL_RETENTION",
} satisfies Readonly<Record<string, VariableName>>;

/** What to set, in the words of Pawl's own settings. */
export function inSettings(finding: Finding): Finding {
  const set = Object.entries(VARIABLES).reduce(
    (text, [field, name]) => text.replaceAll(field, name),
    finding.set,
  );
  return { ...finding, set };
}
