import type { Task } from "../../task/document.ts";

/** What somebody looks for: a part of an id or of a label's value, a label ("team=docs"), a dead letter's code. */
export interface Sought {
  readonly q?: string | undefined;
  readonly error?: string | undefined;
  readonly label?: string | undefined;
}

export function isFound({ q, error, label }: Sought): (task: Task) => boolean {
  const words = q?.toLowerCase();
  return (task) => {
    if (error !== undefined && !(task.state === "failed" && task.error.code === error)) return false;
    const labels = Object.entries(task.meta?.labels ?? {}).map(([name, value]) => `${name}=${value}`);
    if (label !== undefined && !labels.some((one) => one === label || one.startsWith(`${label}=`)))
      return false;
    if (words === undefined) return true;
    return task.id.toLowerCase().includes(words) || labels.some((one) => one.toLowerCase().includes(words));
  };
}
