import { isReached, type Figure, type Row } from './figures';

export interface Machine {
  readonly processor: string;
  readonly cores: number;
  readonly memory: string;
  readonly system: string;
  /**
   * Over the minute before each part started, including the part before it: above the number of cores, wall times mean
   * little.
   */
  readonly load: number;
  /** The Node version of each Node-RED. */
  readonly nodes: string;
}

export interface Measured {
  readonly name: string;
  readonly title: string;
  readonly measuredAt: string;
  /** Of the sources, as far as they were committed. */
  readonly commit: string;
  readonly machine: Machine;
  readonly rounds: number;
  readonly seconds: number;
  readonly rows: readonly Row[];
}

export interface Results {
  readonly parts: readonly Measured[];
}

const digits = (value: number): string => {
  const size = Math.abs(value);
  const decimals = size >= 100 ? 0 : size >= 10 ? 1 : 2;
  return value.toLocaleString('en-US', { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
};

const times = '×';

/** A count has no unit and no decimals. */
const suffixOf = (unit: string): string => (unit === '' || unit === times ? unit : ` ${unit}`);

const written = ({ median, low, high }: Figure, unit: string): string => {
  const shown = unit === '' ? (value: number) => value.toLocaleString('en-US') : digits;
  const spread = low === high ? '' : ` (${shown(low)}–${shown(high)})`;
  return `${shown(median)}${suffixOf(unit)}${spread}`;
};

const goalOf = ({ goal, unit }: Row): string => {
  if (!goal) return '';
  const suffix = suffixOf(goal.of === 'ratio' ? times : unit);
  const { atLeast, atMost, below, everyRound } = goal;
  const bounds = [
    ['≥', atLeast],
    ['≤', atMost],
    ['<', below],
  ] as const;
  const parts =
    atLeast !== undefined && atLeast === atMost
      ? [`exactly ${String(atLeast)}${suffix}`]
      : bounds.flatMap(([sign, bound]) => (bound === undefined ? [] : [`${sign} ${String(bound)}${suffix}`]));
  return [...parts, ...(everyRound ? ['in every round'] : [])].join(', ');
};

const reachedOf = (row: Row): string => {
  const reached = isReached(row);
  return reached === undefined ? '' : reached ? 'yes' : '**no**';
};

const cellsOf = (row: Row): readonly string[] => [
  row.measurement,
  written(row.ours, row.unit),
  row.against ? `${row.against.what}: ${written(row.against.figure, row.unit)}` : '',
  row.ratio ? written(row.ratio, times) : '',
  goalOf(row),
  reachedOf(row),
];

const table = (heading: readonly string[], rows: readonly (readonly string[])[]): string =>
  [heading, heading.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');

/** The table of the terminal: every figure. */
export const tableOf = ({ parts }: Results): string =>
  table(
    ['measurement', 'ours', 'against', 'ratio', 'to reach', 'reached'],
    parts.flatMap(({ rows }) => rows.map(cellsOf)),
  );

/** What a row shows on the page: its ratio, or else its figure; bold if that misses its goal. */
const cellOf = (row: Row | undefined): string => {
  if (!row) return '';
  const said = row.ratio ? written(row.ratio, times) : written(row.ours, row.unit);
  return isReached(row) === false ? `**${said}**` : said;
};

const versionOf = ({ measurement }: Row): string | undefined =>
  /^Node-RED ([\d.]+)[,:] /.exec(measurement)?.[1];

const titleOf = ({ measurement, ratio, against }: Row): readonly string[] => [
  measurement.replace(/^Node-RED [\d.]+[,:] /, ''),
  ratio && against ? against.what : '',
];

/** A line for each measurement, with its results on both versions. */
const byVersion = (rows: readonly Row[]): readonly (readonly string[])[] => {
  const lines = new Map<string, Row[]>();
  for (const row of rows) {
    const key = titleOf(row).join('\n');
    lines.set(key, [...(lines.get(key) ?? []), row]);
  }
  return [...lines].map(([key, found]) => [
    ...key.split('\n'),
    ...['5', '4.1'].map((version) => cellOf(found.find((row) => versionOf(row) === version))),
    [...new Set(found.map(goalOf))].join('; on 4.1 '),
  ]);
};

/** The tables of docs/performance.md: what has a goal, for both versions of Node-RED, and the size of the package. */
export const pageOf = ({ parts }: Results): string => {
  const all = parts.flatMap(({ rows }) => rows);
  const versioned = all.filter((row) => row.goal && versionOf(row) !== undefined);
  const sizes = parts.filter(({ name }) => name === 'size').flatMap(({ rows }) => rows);
  const measured = parts.map(
    ({ name, measuredAt, commit, rounds }) =>
      `\`${name}\` ${measuredAt.slice(0, 10)} at ${commit} (${String(rounds)} ${rounds === 1 ? 'round' : 'rounds'})`,
  );
  const machines = new Set(
    parts.map(({ machine: { processor, cores, memory, system, nodes } }) =>
      [processor, `${String(cores)} cores`, memory, system, nodes].join(', '),
    ),
  );
  return [
    table(['measurement', 'against', 'Node-RED 5', 'Node-RED 4.1', 'goal'], byVersion(versioned)),
    '',
    table(
      ['size', 'figure', 'goal'],
      sizes.map((row) => [row.measurement, cellOf(row), goalOf(row)]),
    ),
    '',
    `Measured: ${measured.join('; ')}. On: ${[...machines].join('; ')}.`,
  ].join('\n');
};

const begin = (what: string): string => `<!-- ${what}: begin, written by npm run bench -->`;
const end = (what: string): string => `<!-- ${what}: end -->`;

/** The document with its table, or anything else between these marks, replaced. */
export const withTable = (document: string, table: string, what = 'table'): string => {
  const from = document.indexOf(begin(what));
  const to = document.indexOf(end(what));
  if (from < 0 || to < from) throw new Error(`The document has lost the marks around its ${what}.`);
  return `${document.slice(0, from + begin(what).length)}\n\n${table}\n\n${document.slice(to)}`;
};
