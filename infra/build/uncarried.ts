/** An agent whose schema the API's bundle could not take along, and why. */
export interface Uncarried {
  readonly agent: string;
  readonly reason: string;
}

/** As whoever builds is told. */
export function uncarriedLine({ agent, reason }: Uncarried): string {
  return `the API checks inputs of ${agent} by JSON Schema only, since its code can't be put into the bundle: ${reason}`;
}
