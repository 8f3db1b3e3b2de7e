import { isReached, type Figure, type Row } from './figures';

export interface Machine {
  readonly processor: string;
  readonly cores: number;
  readonly memory: string;
  readonly system: string;
  /** Of the minute before each part began, the part before it included: over the number of cores, wall times say little. */
  readonly load: number;
  /** The Node that each Node-RED ran on. */
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

/** The table of docs/performance.md: a ratio, or a figure of its own where it has a goal or nothing to compare with. */
export const pageOf = ({ parts }: Results): string => {
  const rows = parts.flatMap(({ rows: found }) =>
    found
      .filter(({ ratio, goal, against }) => ratio || goal || !against)
      .map((row) => [
        row.measurement,
        row.ratio ? written(row.ratio, times) : written(row.ours, row.unit),
        row.ratio && row.against ? row.against.what : '',
        goalOf(row),
        reachedOf(row),
      ]),
  );
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
    table(['measurement', 'ours', 'against', 'to reach', 'reached'], rows),
    '',
    `Measured: ${measured.join('; ')}. On: ${[...machines].join('; ')}.`,
  ].join('\n');
};

const begin = (what: string): string => `<!-- ${what}: begin, written by npm run bench -->`;
const end = (what: string): string => `<!-- ${what}: end -->`;

/** The document with its table, or whatever else is between these marks, replaced. */
export const withTable = (document: string, table: string, what = 'table'): string => {
  const from = document.indexOf(begin(what));
  const to = document.indexOf(end(what));
  if (from < 0 || to < from) throw new Error(`The document has lost the marks around its ${what}.`);
  return `${document.slice(0, from + begin(what).length)}\n\n${table}\n\n${document.slice(to)}`;
};
