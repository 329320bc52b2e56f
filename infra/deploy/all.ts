import { messageOf, PawlError } from "../../shared/errors/errors.ts";
import { agentNames } from "../agents.ts";
import { carryOut, type Deployed, type Deploying, type Prepared, prepare } from "./deployment.ts";
import { obstacles } from "./plan.ts";

/** How far a deploy of everything came. */
export interface AllDeployed {
  readonly done: readonly Deployed[];
  readonly failed?: { readonly function: string; readonly message: string };
  readonly left: readonly string[];
}

/**
 * Agents first, so that whoever is told of a new one or a new lane finds its function there; then who dispatches and
 * who explains; the API last, because it lets new tasks in.
 */
export async function allFunctions(agents: string): Promise<readonly string[]> {
  return [...(await agentNames(agents)), "dispatch", "reconcile", "api"];
}

/** Everything is checked and built before anything is changed; the first that fails is the last that is tried. */
export async function deployAll(
  deployingOf: () => Deploying,
  agents: string,
  said: (prepared: Prepared) => void,
): Promise<AllDeployed> {
  const names = await allFunctions(agents);
  const ready: { readonly prepared: Prepared; readonly deploying: Deploying }[] = [];
  for (const name of names) {
    const deploying = deployingOf();
    deploying.tell(`checking ${name} (${ready.length + 1} of ${names.length})`);
    ready.push({ prepared: await prepare(name, deploying, false), deploying });
  }
  const isDry = ready[0]?.deploying.options.dryRun;
  const wrong = ready.flatMap(({ prepared: { name, plan } }) =>
    obstacles(plan).map((line) => `${name}: ${line}`),
  );
  if (wrong.length > 0 && !isDry) throw new PawlError("deploy_incomplete", wrong.join("\n"));
  const done: Deployed[] = [];
  for (const { prepared, deploying } of ready) {
    const { name } = prepared;
    deploying.tell(`${name} (${done.length + 1} of ${names.length})`);
    said(prepared);
    try {
      const deployed = await carryOut(prepared, deploying);
      done.push(deployed);
      if (!isDry) deploying.tell(`deployed ${deployed.service}`);
    } catch (error) {
      return {
        done,
        failed: { function: name, message: messageOf(error) },
        left: names.slice(done.length + 1),
      };
    }
  }
  return { done, left: [] };
}
