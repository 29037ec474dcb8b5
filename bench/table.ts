// The arithmetic of the table: medians, ratios of paired rounds, and whether an aim was met.

/** @throws Error for no values: nothing was measured */
export function median(values: readonly number[]): number {
  if (values.length === 0) throw new Error('There is no median of nothing.');
  const sorted = values.toSorted((left, right) => left - right);
  const upper = sorted[Math.floor(sorted.length / 2)]!;
  return sorted.length % 2 === 1 ? upper : (sorted[sorted.length / 2 - 1]! + upper) / 2;
}

/** @param share such as 0.99; the smallest value that at least this share of the values does not exceed */
export function percentile(values: readonly number[], share: number): number {
  if (values.length === 0) throw new Error('There is no percentile of nothing.');
  const sorted = values.toSorted((left, right) => left - right);
  return sorted[Math.max(Math.ceil(sorted.length * share) - 1, 0)]!;
}

/**
 * The median of the rounds' ratios: both sides of a round ran next to each other, so that what the machine did besides
 * touched them alike.
 */
export function medianRatio(numerators: readonly number[], denominators: readonly number[]): number {
  if (numerators.length !== denominators.length) throw new Error('Each round has two sides.');
  return median(numerators.map((value, round) => value / denominators[round]!));
}

/** One line of the table. */
export interface Row {
  what: string;
  against: string;
  /** What `ours` and `theirs` are, with the unit. */
  measure: string;
  ours: number;
  /** Undefined when the aim is an absolute figure. */
  theirs?: number;
  /** What `aim` speaks of: a ratio, or the figure itself. */
  result: number;
  aim: { atLeast: number } | { atMost: number } | { below: number } | 'none';
  /** Informative figures, by name with unit. */
  beside?: Record<string, number>;
}

export function isMet({ result, aim }: Pick<Row, 'result' | 'aim'>): boolean {
  // Not a number means not measured, which is not met.
  if (Number.isNaN(result)) return false;
  if (aim === 'none') return true;
  if ('atLeast' in aim) return result >= aim.atLeast;
  return 'atMost' in aim ? result <= aim.atMost : result < aim.below;
}

const asText = (aim: Row['aim']): string => {
  if (aim === 'none') return '';
  if ('atLeast' in aim) return `>= ${aim.atLeast}`;
  return 'atMost' in aim ? `<= ${aim.atMost}` : `< ${aim.below}`;
};

const digits = (value: number): string =>
  value.toLocaleString('en-US', { maximumFractionDigits: Math.abs(value) < 10 ? 2 : Math.abs(value) < 100 ? 1 : 0 });

/** As a Markdown table, ready for a document. */
export function formatTable(rows: readonly Row[]): string {
  const header = ['what', 'against', 'measure', 'ours', 'theirs', 'result', 'aim', '', 'beside'];
  const lines = rows.map((row) => [
    row.what,
    row.against,
    row.measure,
    digits(row.ours),
    row.theirs === undefined ? '' : digits(row.theirs),
    digits(row.result),
    asText(row.aim),
    row.aim === 'none' ? '' : isMet(row) ? 'met' : 'MISSED',
    Object.entries(row.beside ?? {})
      .map(([name, value]) => `${name} ${digits(value)}`)
      .join('; '),
  ]);
  const widths = header.map((title, column) => Math.max(title.length, ...lines.map((line) => line[column]!.length)));
  const toLine = (cells: string[]): string =>
    `| ${cells.map((cell, column) => cell.padEnd(widths[column]!)).join(' | ')} |`;
  return [toLine(header), toLine(widths.map((width) => '-'.repeat(width))), ...lines.map(toLine)].join('\n');
}
