import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { messageOf } from "../../../shared/errors/errors.ts";
import type { Env } from "../../../shared/settings/variable.ts";
import { agentNames } from "../../agents.ts";
import { OWN_FUNCTIONS } from "../../build/targets.ts";
import { isInstalled, ROOT } from "../../project.ts";
import type { Tell } from "../find-nats.ts";
import { buildChanged } from "./changes/build.ts";
import { changedSince, stampsOf, withMore } from "./changes/look.ts";
import { type Builds, filesOf, NOTHING_BUILT, needsBuild } from "./changes/plan.ts";
import { coalesced, watching } from "./changes/watch.ts";
import { asExports, environmentOf, type Parts } from "./environment.ts";
import type { Functions } from "./functions.ts";
import { DEV_VARS, type Project, readSources, WRANGLER } from "./project.ts";
import { queueKeeper } from "./queues.ts";
import type { Scripts } from "./scripts.ts";
import type { Sources } from "./variables.ts";

export interface StepOptions {
  readonly project: Project;
  readonly sources: Sources;
  readonly shell: Env;
  readonly parts: Parts;
  readonly scripts: Scripts;
  readonly tell: Tell;
}

/** Whoever works on Pawl changes these; an installed package stays as it is. */
const PAWLS_OWN = isInstalled ? [] : [join(ROOT, "shared"), join(ROOT, "functions")];

/** Keeps queues, functions, variables and scripts in step with the author's files. Throws where settings are wrong. */
export function inStep({ project, shell, parts, scripts, tell, ...options }: StepOptions) {
  const { agents, state, folder } = project;
  const queues = queueKeeper();
  const envFile = join(state, "env.sh");
  const settings = [WRANGLER, DEV_VARS].map((name) => join(folder, name));
  let { sources } = options;
  let builds: Builds = NOTHING_BUILT;
  let environment = environmentOf(sources, [], parts);

  /** Brings everything to what was built, and to the variables as they are. Names of the functions that are others now. */
  const apply = async (functions: Functions, next: Builds): Promise<string[]> => {
    const told = new Set(builds === NOTHING_BUILT ? [] : environment.notes);
    const known = Object.values(next.agents);
    // Settings first: the namespace is in every identity's permissions.
    await parts.servers.identify(environmentOf(sources, known, parts).settings, known);
    environment = environmentOf(sources, known, parts);
    for (const note of environment.notes) if (!told.has(note)) tell(note);
    await writeFile(envFile, asExports(environment.forCommandsWhole), { mode: 0o600 });
    await queues.ensure(known, environment.forCommands);
    await scripts.load(next.scripts);
    for (const name of Object.keys(builds.bundles)) if (!next.bundles[name]) await functions.remove(name);
    const changed = Object.entries(next.bundles).map(async ([name, { file }]) => {
      try {
        return (await functions.put(name, file, environment.of(name))) ? [name] : [];
      } catch (error) {
        tell(`! ${name} does not start: ${messageOf(error)}`);
        return [];
      }
    });
    builds = next;
    return (await Promise.all(changed)).flat();
  };
  const build = async (changed: readonly string[]): Promise<Builds> => {
    const next = await buildChanged({ agents, out: join(state, "build"), before: builds, changed });
    for (const { name, message } of next.problems) {
      const kept = next.bundles[name] ? "The last good one goes on" : "It runs once it is mended";
      tell(`! not rebuilt: ${name}: ${message}\n${kept}`);
    }
    return next;
  };
  /** Settings that no function could start with are not taken over. */
  const readSettings = () => {
    try {
      const next = readSources(project, shell);
      environmentOf(next, Object.values(builds.agents), parts);
      sources = next;
    } catch (error) {
      tell(`! The settings are not taken over: ${messageOf(error)}`);
    }
  };
  const isConcerned = async (changed: readonly string[]): Promise<boolean> => {
    const names = await agentNames(agents);
    const spoken = names.filter((name) => existsSync(join(agents, `${name}.model.ts`)));
    return needsBuild({ names, scripts: spoken }, OWN_FUNCTIONS, builds, changed);
  };
  const watched = () => ({
    trees: [agents, ...PAWLS_OWN],
    files: [...filesOf(builds), ...settings],
  });

  return {
    envFile,
    get environment() {
      return environment;
    },
    get agents() {
      return Object.keys(builds.agents);
    },
    /** Builds and starts everything, and follows changes from then on. */
    begin: async (functions: Functions): Promise<Disposable> => {
      let stamps = stampsOf(watched());
      const update = coalesced(async () => {
        const now = stampsOf(watched());
        const changed = changedSince(stamps, now);
        if (changed.length === 0) return;
        const begun = Date.now();
        try {
          if (changed.some((file) => settings.includes(file))) readSettings();
          const before = builds;
          const put = await apply(functions, (await isConcerned(changed)) ? await build(changed) : builds);
          for (const line of summary(before, builds, put, Date.now() - begun)) tell(line);
          // As it was before the build: what changed since is seen the next time.
          stamps = withMore(now, filesOf(builds));
        } catch (error) {
          tell(`! not rebuilt: ${messageOf(error)}`);
        }
      });
      await apply(functions, await build([]));
      stamps = withMore(stamps, filesOf(builds));
      const follow = () => void update().then(() => watch.watch(watched()));
      const watch = watching(follow, tell);
      watch.watch(watched());
      // For what changed since the first look.
      follow();
      return watch;
    },
  };
}

/** What a person is told of a change. */
function summary(before: Builds, after: Builds, put: readonly string[], ms: number): string[] {
  const came = Object.keys(after.bundles).filter((name) => !before.bundles[name]);
  const went = Object.keys(before.bundles).filter((name) => !after.bundles[name]);
  const rest = put.filter((name) => !came.includes(name));
  return [
    ...came.map((name) => `new: ${name} runs`),
    ...went.map((name) => `gone: ${name} is stopped; what is in its queue stays there`),
    ...(rest.length > 0 ? [`rebuilt in ${ms} ms: ${rest.join(", ")}`] : []),
  ];
}
