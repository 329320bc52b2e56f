import type { AgentPlan, Plan } from "./plan.ts";
import type { Program } from "./program.ts";

/** One task of one agent on one runner, and nothing goes wrong. */
export function quiet(program: Program, more: Partial<Plan> = {}, main: Partial<AgentPlan> = {}): Plan {
  const agent = { program, attempts: 2, lanes: 1, order: "loose", timeout: 120_000 } as const;
  return {
    seed: 1,
    ackWait: 30_000,
    isReplicated: false,
    agents: { main: { ...agent, ...main }, child: { ...agent, program: [] } },
    runners: [{ name: "r1", version: 1, skew: 0, after: 1 }],
    operations: [{ at: 10, task: "t1", do: "submit" }],
    faults: [],
    serverFaults: [],
    losses: 0,
    calmAt: 10_000,
    isReconciled: true,
    ...more,
  };
}
