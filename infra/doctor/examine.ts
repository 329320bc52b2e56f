import type { Contract } from "./contract.ts";
import { type Finding, findings } from "./rule.ts";
import { contractRules } from "./rules.ts";

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
