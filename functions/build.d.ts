/** What the build puts into a bundle: see infra/build/virtual.ts. */
declare module "pawl:agent" {
  /** The one agent of this function. */
  const agent: import("../shared/agent.ts").Agent;
  export default agent;
  export const name: string;
}

declare module "pawl:agents" {
  /** All agents of the project, without their code. */
  export const agents: readonly {
    readonly name: string;
    readonly lanes: number;
    /** Agents whose tasks it submits. */
    readonly children: readonly string[];
    readonly dispatchTimeout: number;
    /** For the API: its schema as JSON Schema, and what surely every input keeps to that it accepts. */
    readonly inputSchema?: import("../shared/values/json.ts").JsonObject;
    readonly inputBounds?: import("../shared/values/json.ts").JsonObject;
    /** For the dispatcher. */
    readonly schedules: readonly import("../shared/task/schedule.ts").Schedule[];
  }[];
}

declare module "pawl:schemas" {
  /** Loads an agent's module, for its schema: of the agents that have one, and whose code this platform's bundle can hold. */
  export const schemas: Readonly<
    Record<string, () => Promise<{ readonly default: import("../shared/agent.ts").Agent }>>
  >;
}
