import { PawlError } from "../../shared/errors/errors.ts";
import type { Contract } from "./contract.ts";
import type { Gathered } from "./live/gather.ts";
import { inSettings, ownContract } from "./live/own.ts";
import { type Finding, findings } from "./rule.ts";
import { contractRules, liveRules } from "./rules.ts";
import type { Examined } from "./said.ts";

/** What is wrong with how a queue is set up and used. */
export const examine = (contract: Contract): Finding[] => findings(contractRules, contract, contract.name);

/** What rules would have asked for, and nobody said, in words of the application's form. */
export function unsaid({ consumer, application, server }: Contract): string[] {
  const asked = consumer
    ? (["heartbeat", "longest_work", "record_ttl", "publish_retry", "dead_letters", "acks", "sync"] as const)
    : (["publish_retry", "sync"] as const);
  const left = asked.filter((field) => application[field] === undefined);
  return [...(server ? [] : ["server"]), ...left.map((field) => `application.${field}`)];
}

/** What a build or a deploy has to say of the settings that functions will have: throws for an error. */
export function warnedOf(config: Parameters<typeof ownContract>[0]): string[] {
  const found = examine(ownContract(config)).map(inSettings);
  const line = ({ rule, is, set }: Finding) => `${rule}: ${is}. Set ${set}`;
  const errors = found.filter(({ severity }) => severity === "error");
  if (errors.length > 0) throw new PawlError("setting_invalid", errors.map(line).join("\n"));
  return found.map(line);
}

/** A deployment of Pawl's: its settings, held against the rules for anybody's queue, and what was seen of it. */
export function examineLive({ live, config, unseen }: Gathered): Examined {
  const { queues, nats, buckets } = live;
  const own = config ? examine(ownContract(config, live)).map(inSettings) : [];
  return {
    findings: [...own, ...findings(liveRules, live, "this deployment")],
    examined: [
      "the settings",
      ...(nats ? [`nats-server ${nats.version}`] : []),
      ...queues.map(({ stream }) => stream),
      ...buckets.map(({ name }) => name),
    ],
    unseen,
  };
}
