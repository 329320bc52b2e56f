/** One line that is written over, for a person who watches; nothing where nobody does. */
export function progressLine(to: NodeJS.WriteStream): { tell(text: string): void; end(): void } {
  return {
    tell: (text) => {
      if (to.isTTY) to.write(`\r\x1b[K${text.slice(0, (to.columns || 120) - 1)}`);
    },
    end: () => {
      if (to.isTTY) to.write("\r\x1b[K");
    },
  };
}
