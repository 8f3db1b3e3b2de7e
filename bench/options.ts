import { parseArgs } from 'node:util';
import type { Version } from '../test/support/installation';
import type { Part } from './part';

export const usualRounds = 5;

export interface Options {
  readonly parts: readonly Part[];
  readonly rounds: number;
  readonly scale: number;
  readonly versions: readonly Version[];
  readonly heap: number | undefined;
  readonly profile: string | undefined;
  /** The commit to compare with. */
  readonly against: string | undefined;
  readonly isHelp: boolean;
  /** Whether the figures may be saved. */
  readonly isComplete: boolean;
}

const namesOf = (parts: readonly Part[]): string => parts.map(({ name }) => name).join(', ');

const chosenOf = (names: readonly string[], parts: readonly Part[], isCompared: boolean): readonly Part[] => {
  const unknown = names.filter((name) => !parts.some((part) => part.name === name));
  if (unknown.length > 0)
    throw new Error(`There is no measurement "${unknown.join(', ')}", only ${namesOf(parts)}.`);
  const chosen = names.length === 0 ? parts : parts.filter(({ name }) => names.includes(name));
  if (!isCompared) return chosen;
  const comparable = chosen.filter(({ compared }) => compared);
  if (comparable.length < names.length)
    throw new Error(`--against takes only ${namesOf(parts.filter(({ compared }) => compared))}.`);
  return comparable;
};

/** What the command line asks for; throws when that is impossible. */
export const optionsOf = (args: readonly string[], parts: readonly Part[]): Options => {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      rounds: { type: 'string', default: String(usualRounds) },
      scale: { type: 'string', default: '1' },
      versions: { type: 'string', default: '5,4' },
      heap: { type: 'string' },
      profile: { type: 'string' },
      against: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  const { profile, against } = values;
  const rounds = Number(values.rounds);
  const scale = Number(values.scale);
  const versions = values.versions.split(',').map((version) => Number(version) as Version);
  const heap = values.heap === undefined ? undefined : Number(values.heap);
  const isUsual = [heap, profile, against].every((value) => value === undefined);
  return {
    parts: chosenOf(positionals, parts, against !== undefined),
    rounds,
    scale,
    versions,
    heap,
    profile,
    against,
    isHelp: values.help,
    isComplete:
      isUsual && scale === 1 && rounds >= usualRounds && versions.includes(4) && versions.includes(5),
  };
};
