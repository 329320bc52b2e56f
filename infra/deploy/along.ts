import { agentNames } from "../agents.ts";
import { OWN_FUNCTIONS } from "../build/targets.ts";
import { candidateOf, needingOf, type Project } from "./candidate.ts";
import { type Along, changesOf } from "./plan.ts";
import { asked, type Looked } from "./platform.ts";

/** So many at a time: each is a build, and programs that take a second to start. */
const AT_ONCE = 4;

/**
 * Every other function, and whether it is deployed as it would be now. What an agent changes may be in any of them: Pawl's
 * own carry what they have to know of all agents, and other agents the code that they share.
 */
export async function alongWith(
  name: string,
  project: Project,
  look: (name: string) => Promise<Looked>,
  command: (name: string) => string,
): Promise<readonly Along[]> {
  const others = [...OWN_FUNCTIONS, ...(await agentNames(project.agents))].filter((one) => one !== name);
  const along: Along[] = [];
  for (let from = 0; from < others.length; from += AT_ONCE) {
    const some = others.slice(from, from + AT_ONCE);
    along.push(...(await Promise.all(some.map((one) => alongOf(one, project, look, command)))));
  }
  return along;
}

async function alongOf(
  name: string,
  project: Project,
  look: (name: string) => Promise<Looked>,
  command: (name: string) => string,
): Promise<Along> {
  const unknown = (why: string): Along => ({ function: name, is: "unknown", why: [why] });
  const todo = `Run: ${command(name)}`;
  const now = await look(name);
  if (now.is === "unknown") return unknown(now.why);
  if (now.is === "none") return { function: name, is: "not deployed", why: [], todo };
  // Its own mistakes, such as a bundle over the limit, must not keep another from being deployed.
  return asked(async () => {
    const candidate = await candidateOf(name, project, await needingOf(name, project));
    const why = changesOf(candidate, project.platform, now).list;
    return why.length > 0
      ? { function: name, is: "outdated", why, todo }
      : { function: name, is: "up to date", why };
  }, unknown);
}
