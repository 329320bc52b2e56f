import type { Contract } from "./contract.ts";
import type { Rule, RuleText } from "./rule.ts";
import { acceptedRules } from "./rules/accepted.ts";
import { deliveryRules } from "./rules/delivery.ts";
import { liveRules } from "./rules/live.ts";
import { recordRules } from "./rules/records.ts";
import { settingRules } from "./rules/setting.ts";
import { storageRules } from "./rules/storage.ts";

/** Of any stream and consumer, and who uses them. */
export const contractRules = {
  ...deliveryRules,
  ...recordRules,
  ...storageRules,
  ...settingRules,
  ...acceptedRules,
} as const satisfies Record<string, Rule<Contract>>;

export type ContractRule = keyof typeof contractRules;

export { liveRules };

export const allRules: Readonly<Record<string, RuleText>> = { ...contractRules, ...liveRules };
