import type { Row } from './figures';
import type { Measured, Results } from './table';

/** The waits of a million advisors, fifty each, and the cost of one silent day at the recommended pace. */
const waits = 50_000_000;
const pollsOfWait = 298;
const writesOfWait = 3;
const day = 86_400;

const rounded = (value: number, digits = 2): string =>
  Number(value.toPrecision(digits)).toLocaleString('en-US', { maximumFractionDigits: 2 });

const notMeasured = '- Not measured yet: `npm run bench -- instances`.';

const rowOf = ({ rows }: Measured, of: RegExp): Row | undefined =>
  rows.find(({ measurement }) => of.test(measurement));

/**
 * What docs/scaling.md computes from the figures of Node-RED 5 with its state in PostgreSQL; _m_ is measured, _c_
 * computed.
 */
export const scalingOf = ({ parts }: Results): string => {
  const part = parts.find(({ name }) => name === 'instances');
  if (!part) return notMeasured;
  const cpu = rowOf(part, /^Node-RED 5,.*CPU per poll/);
  const rate = rowOf(part, /^Node-RED 5,.*polls per second of one instance/);
  const text = rowOf(part, /^Node-RED 5,.*CPU per text of a list/);
  const bytes = rowOf(part, /bytes in the database each/);
  const memory = rowOf(part, /^Node-RED 5,.*RssAnon/);
  const first = rowOf(part, /^Node-RED 5,.*first poll/);
  const several = part.rows.filter(({ measurement }) =>
    /^Node-RED 5,.*texts per second of \d/.test(measurement),
  );
  if (!cpu || !rate || !text || !bytes || !memory || !first) return notMeasured;
  const polls = (waits * pollsOfWait) / day;
  const cores = (polls * cpu.ours.median) / 1_000_000;
  const alone = polls / rate.ours.median;
  const counted = /([\d,]+) waits/.exec(memory.measurement)?.[1] ?? '';
  return [
    `- A poll takes ${rounded(cpu.ours.median, 3)} µs of CPU _m_, ${rounded(cpu.ratio?.median ?? 0, 3)} times that of the embedded store. ${rounded(polls, 3)} polls a second take **${rounded(cores)} cores**, ${rounded(2 * cores)} at half load _c_, plus the database.`,
    `- One instance makes ${rounded(rate.ours.median, 3)} polls a second _m_, so 50 million waits take **${rounded(Math.ceil(alone))} instances**, ${rounded(Math.ceil(2 * alone))} at half load _c_: some ${rounded(waits / (2 * alone))} waits each, of ${rounded(1_000_000 / (2 * alone))} advisors.`,
    `- A wait takes ${rounded(bytes.ours.median, 3)} bytes in the database, indexes included _m_: 50 million take **${rounded((waits * bytes.ours.median) / 1e9)} GB** _c_.`,
    `- A wait without an answer is written ${writesOfWait} times. Each poll moves a key of some 50 bytes: ${rounded(polls)} moves a second, up to a thousand to a commit _c_.`,
    `- An instance that polls ${counted} waits uses ${rounded(memory.ours.median, 3)} MB of its own (\`RssAnon\`) _m_ and makes its first poll ${rounded(first.ours.median)} s after its nodes are ready _m_.`,
    `- A text of a list takes ${rounded(text.ours.median, 3)} µs of CPU _m_, ${rounded(text.ratio?.median ?? 0, 3)} times that of the embedded store. With the database and the service on the same two cores, ${several.map(({ ours }, n) => `${n + 1} instance${n === 0 ? '' : 's'} sent ${rounded(ours.median, 3)}`).join(', ')} texts a second _m_.`,
  ].join('\n');
};
