/** What must hold whatever happens, in the words of the README's promises. */
export const promises = {
  "one final state": "a task that has ended stays as it ended, with one result",
  "no overlap": "no two executions of a task act at the same time",
  "nothing repeated": "what the journal has stored is not done again, and no effect happens twice",
  "settled first": "no message leaves its queue before a document says what became of it",
  "everything ends": "once faults stop, every accepted task ends, or waits for a person",
  "everything explained": "a report explains every sequence, and finds nothing that was not planted",
  "within budget": "a task's model calls cost no more than its budget, by the model's own meter",
  "no doubt dropped": "a task is not cancelled over an effect that nobody knows the end of",
  "no needless doubt": "nobody is asked about an effect that its holder knows it never began",
  "no accident": "no code of ours fails in a way that nobody foresaw",
} as const;

export type PromiseName = keyof typeof promises;

/** A promise that did not hold. */
export class Broken extends Error {
  readonly promise: PromiseName;

  constructor(promise: PromiseName, message: string) {
    super(message);
    this.promise = promise;
  }
}
