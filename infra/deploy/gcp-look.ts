import type { CommandResult } from "./commands.ts";
import type { Looked } from "./platform.ts";

interface Service {
  readonly spec?: {
    readonly template?: {
      readonly spec?: {
        readonly containers?: readonly {
          readonly env?: readonly { name: string; value?: string; valueFrom?: object }[];
        }[];
      };
    };
  };
  readonly status?: {
    readonly latestReadyRevisionName?: string;
    readonly traffic?: readonly { revisionName?: string; percent?: number; latestRevision?: boolean }[];
    readonly conditions?: readonly { type: string; lastTransitionTime?: string }[];
  };
}

/** What `gcloud run services describe --format=json` says of a function. */
export function lookedIn({ code, stdout, stderr }: CommandResult): Looked {
  if (code !== 0 && /cannot find service|NOT_FOUND|not found/i.test(stderr)) return { is: "none" };
  const { spec, status } = parsed(stdout) ?? {};
  const [busiest] = [...(status?.traffic ?? [])].sort((a, b) => (b.percent ?? 0) - (a.percent ?? 0));
  const revision = busiest?.revisionName ?? status?.latestReadyRevisionName;
  if (code !== 0 || !revision)
    return { is: "unknown", why: (stderr + stdout).trim().slice(0, 600) || "gcloud said nothing" };
  const env = spec?.template?.spec?.containers?.[0]?.env ?? [];
  const at = status?.conditions?.find(({ type }) => type === "Ready")?.lastTransitionTime;
  return {
    is: "there",
    revision,
    ...(at && { at }),
    settings: Object.fromEntries(
      env.filter(({ valueFrom }) => !valueFrom).map(({ name, value = "" }) => [name, value]),
    ),
    secrets: env.filter(({ valueFrom }) => valueFrom).map(({ name }) => name),
    isPinned: busiest !== undefined && !busiest.latestRevision,
  };
}

function parsed(json: string): Service | undefined {
  try {
    return JSON.parse(json) as Service;
  } catch {
    return undefined;
  }
}
