/** What the build puts into a bundle: see infra/build.ts. */
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
    readonly dispatchTimeout: number;
    /** For the API. */
    readonly inputSchema?: import("../shared/values/json.ts").JsonObject;
    /** For the dispatcher. */
    readonly schedules: readonly import("../shared/task/schedule.ts").Schedule[];
  }[];
}
