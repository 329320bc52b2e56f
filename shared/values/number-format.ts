/** Writes numbers. Made when the first is written: it takes milliseconds, which every start of a process would wait for. */
export function numberFormat(
  locale: string,
  options: Intl.NumberFormatOptions = {},
): (value: number) => string {
  let made: Intl.NumberFormat | undefined;
  return (value) => {
    made ??= new Intl.NumberFormat(locale, options);
    return made.format(value);
  };
}
