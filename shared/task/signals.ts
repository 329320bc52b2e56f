/** The name of the signal that answers an approval. */
export function approvalSignal(name: string): string {
  return `approval:${name}`;
}

/** The name of the signal by which a child task tells its parent that it is over. */
export function childSignal(childId: string): string {
  return `child:${childId}`;
}

/** Whether it may be sent as an event: the names of approvals, children and resolutions are Pawl's own. */
export function isEventName(name: string): boolean {
  return !/^(approval:|child:|effect )/.test(name);
}
