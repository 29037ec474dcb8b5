// Text from models and web pages, made fit for a terminal.

/** Control characters could move the cursor, rewrite what is above, or reach the clipboard. */
export const withoutControls = (text: string): string => text.replace(/(?![\n\t])\p{Cc}/gu, '');

/** The text as one line of at most `width` characters. */
export function oneLine(text: string, width: number): string {
  const line = withoutControls(text.replace(/\s+/g, ' ')).trim();
  return line.length > width ? `${line.slice(0, Math.max(width - 1, 1)).toWellFormed()}…` : line;
}

/** Lines of at most `width` characters, broken between words; a longer word, such as an address, stays whole. */
export function wrap(text: string, width: number): string[] {
  return withoutControls(text)
    .split('\n')
    .flatMap((paragraph) => {
      const lines: string[] = [];
      for (const word of paragraph.split(/\s+/).filter((part) => part !== '')) {
        const last = lines.at(-1);
        if (last !== undefined && last.length + 1 + word.length <= width) lines[lines.length - 1] = `${last} ${word}`;
        else lines.push(word);
      }
      return lines.length > 0 ? lines : [''];
    });
}

/** Minutes and seconds. */
export function duration(ms: number): string {
  const seconds = Math.max(Math.floor(ms / 1000), 0);
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
}
