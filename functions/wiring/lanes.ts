import { agents } from "pawl:agents";

/** How many lanes an agent had when this function was built. */
export const lanesOf = (agent: string): number | undefined =>
  agents.find(({ name }) => name === agent)?.lanes;
