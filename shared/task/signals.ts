/** The name of the signal that answers an approval. */
export function approvalSignal(name: string): string {
  return `approval:${name}`;
}

/** The name of the signal by which a child task tells its parent that it is over. */
export function childSignal(childId: string): string {
  return `child:${childId}`;
}
