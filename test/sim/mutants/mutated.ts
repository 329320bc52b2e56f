/** The source with each change made. A change that no longer fits its source is an error, not a mutant that survives. */
export function mutated(
  source: string,
  mutant: string,
  list: readonly (readonly [string, string])[],
): string {
  return list.reduce((text, [find, replace]) => {
    const places = text.split(find).length - 1;
    if (places !== 1)
      throw new Error(`Mutant ${mutant}: ${JSON.stringify(find)} is there ${places} times, not once`);
    return text.replace(find, () => replace);
  }, source);
}
