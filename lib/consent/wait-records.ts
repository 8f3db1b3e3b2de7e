import { isSame, type Pace } from './schedule';
import type { StoredSubject } from './subjects';
import type { WaitOutcome } from './verdict';

/**
 * What a wait needs to go on: its advisor, its phone number or member id, its start, how many waits its message began,
 * and its pace unless that is as recommended. Small, for all of them are read when a node starts.
 */
export type WaitRecord = readonly [
  advisor: string,
  subject: StoredSubject,
  start: number,
  count: number,
  pace?: Pace,
];

/** A wait with its id. */
export type Row = readonly [id: string, ...record: WaitRecord];

/** Waits that have all in common but whom they are for. */
export interface Group {
  readonly message: string;
  readonly advisor: string;
  readonly start: number;
  readonly count: number;
  readonly pace?: Pace;
  readonly waits: (readonly [index: number, subject: StoredSubject])[];
}

/** A group on disk, short, for a hundred single waits have one each; its pace as a place in the list of the pack's. */
type StoredGroup = readonly [
  message: string,
  advisor: string,
  start: number,
  count: number,
  waits: Group['waits'],
  pace?: number,
];

/** Waits in one record. */
export interface PackRecord {
  /** Earlier versions wrote them as they are. */
  readonly groups: readonly (StoredGroup | Group)[];
  readonly paces?: readonly Pace[];
}

export interface MessageRecord {
  readonly message: Record<string, unknown>;
  readonly dropped: boolean;
  /** What the node keeps with the message, and with each wait. */
  readonly about: unknown;
  readonly contexts: readonly unknown[];
}

export type Stored = WaitRecord | PackRecord | MessageRecord | WaitOutcome;

/** A wait's id is its message's, with its number in a list: ids are in the order of arrival. */
export const waitId = (messageId: string, index: number): string =>
  // Joined, for a string put together otherwise keeps its parts, and nodes keep the ids of what they began.
  index === 0 ? messageId : [messageId, String(index).padStart(7, '0')].join('-');
const indexIn = (id: string): number => {
  const dash = id.indexOf('-');
  return dash < 0 ? 0 : Number(id.slice(dash + 1));
};
const messageIdOf = (id: string): string => {
  const dash = id.indexOf('-');
  return dash < 0 ? id : id.slice(0, dash);
};

export const waitKey = (node: string, id: string): string => `${node}/w/${id}`;
export const packKey = (node: string, firstId: string): string => `${node}/p/${firstId}`;
export const messageKey = (node: string, messageId: string): string => `${node}/m/${messageId}`;
export const outcomeKey = (node: string, id: string): string => `${node}/o/${id}`;
export const idIn = (key: string): string => key.slice(key.lastIndexOf('/') + 1);

/** A wait in a record of its own, as one in a pack. */
export const groupOf = (id: string, [advisor, subject, start, count, pace]: WaitRecord): Group => ({
  message: messageIdOf(id),
  advisor,
  start,
  count,
  ...(pace && { pace }),
  waits: [[indexIn(id), subject]],
});

const isShort = (group: StoredGroup | Group): group is StoredGroup => Array.isArray(group);

export const groupsIn = ({ groups, paces = [] }: PackRecord): Group[] =>
  groups.map((group) => {
    if (!isShort(group)) return group;
    const [message, advisor, start, count, waits, number] = group;
    const pace = number === undefined ? undefined : paces[number];
    return pace ? { message, advisor, start, count, waits, pace } : { message, advisor, start, count, waits };
  });

export const packOf = (rows: readonly Row[]): PackRecord => {
  const groups: StoredGroup[] = [];
  const paces: Pace[] = [];
  const numberOf = (pace: Pace): number => {
    const found = paces.findIndex((known) => isSame(known, pace));
    return found < 0 ? paces.push(pace) - 1 : found;
  };
  for (const [id, advisor, subject, start, count, pace] of rows) {
    const message = messageIdOf(id);
    const last = groups.at(-1);
    // Those of one message have their start, their count and their pace in common.
    const isNext = last?.[0] === message && last[1] === advisor;
    if (isNext) last[4].push([indexIn(id), subject]);
    else {
      const waits: Group['waits'] = [[indexIn(id), subject]];
      groups.push(
        pace
          ? [message, advisor, start, count, waits, numberOf(pace)]
          : [message, advisor, start, count, waits],
      );
    }
  }
  return paces.length === 0 ? { groups } : { groups, paces };
};

export const rowsIn = (pack: PackRecord): Row[] =>
  groupsIn(pack).flatMap(({ message, advisor, start, count, pace, waits }) =>
    waits.map(([index, subject]): Row => {
      const row = [waitId(message, index), advisor, subject, start, count] as const;
      return pace ? [...row, pace] : row;
    }),
  );
