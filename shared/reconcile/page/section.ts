/** A report as tables and lines, before it is HTML or Markdown. */
export interface Section {
  readonly title: string;
  /** It belongs to the section before it. */
  readonly isPart?: true;
  readonly lines?: readonly string[];
  readonly head?: readonly string[];
  readonly rows?: readonly (readonly string[])[];
  /** What comes after the first column are numbers. */
  readonly isNumeric?: true;
}
