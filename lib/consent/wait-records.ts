import { recommended, type Pace } from './schedule';
import type { WaitOutcome } from './verdict';

/** Whose consent a wait is for. */
export type Subject = { readonly phone: string } | { readonly memberId: number };

/** What a wait needs to go on. Small, for all of them are read when a node starts; the message is in its own record. */
export interface WaitRecord {
  readonly advisor: string;
  readonly subject: Subject;
  readonly start: number;
  /** Left out when as recommended. */
  readonly pace?: Pace;
  /** How many waits its message began. */
  readonly count: number;
  readonly context?: unknown;
}

export interface MessageRecord {
  readonly message: Record<string, unknown>;
  readonly dropped: boolean;
}

export type Stored = WaitRecord | MessageRecord | WaitOutcome;

/** A wait's id is its message's, with its number in a list: ids are in the order of arrival. */
export const waitId = (messageId: string, index: number): string =>
  index === 0 ? messageId : `${messageId}-${String(index).padStart(7, '0')}`;
export const messageIdOf = (id: string): string => {
  const dash = id.indexOf('-');
  return dash < 0 ? id : id.slice(0, dash);
};

export const waitKey = (node: string, id: string): string => `${node}/w/${id}`;
export const messageKey = (node: string, messageId: string): string => `${node}/m/${messageId}`;
export const outcomeKey = (node: string, id: string): string => `${node}/o/${id}`;
export const idIn = (key: string): string => key.slice(key.lastIndexOf('/') + 1);

export const isRecommended = (pace: Pace): boolean =>
  (Object.keys(recommended) as (keyof Pace)[]).every((name) => pace[name] === recommended[name]);

export const targetKey = (advisor: string, subject: Subject): string =>
  'phone' in subject ? `${advisor}\n${subject.phone}` : `${advisor}\n#${String(subject.memberId)}`;

export const partsOf = (key: string): { readonly advisor: string; readonly subject: Subject } => {
  const end = key.lastIndexOf('\n');
  const of = key.slice(end + 1);
  return {
    advisor: key.slice(0, end),
    subject: of.startsWith('#') ? { memberId: Number(of.slice(1)) } : { phone: of },
  };
};
