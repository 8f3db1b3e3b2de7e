import { nextIteration } from '../event-loop';
import type { Arrived } from '../flow';
import { only } from '../only';
import type { Reply } from '../server';
import { type Request } from './setup';

export interface Item {
  readonly contactId: number;
}
export interface ItemPage {
  readonly data: Item[];
}

export const idsOf = (arrived: readonly Arrived[]): number[] =>
  arrived.map(({ msg }) => (msg.payload as Item).contactId);
/** The message after the previous ones. */
export const after = (arrived: readonly Arrived[], count: number): Arrived => only(arrived.slice(count));
export const partsOf = (arrived: readonly Arrived[]): { index: number; count?: number; id: string }[] =>
  arrived.map(({ msg }) => msg.parts as { index: number; count?: number; id: string });
export const upTo = (count: number): number[] => Array.from({ length: count }, (_, index) => index);

/** A service whose address book is what `book` returns at the time of the request. */
export const paging =
  (book: () => readonly number[], more: (request: Request) => object = () => ({})) =>
  (request: Request): Reply => {
    const page = Number(request.query.page);
    const pageSize = Number(request.query.pageSize);
    const all = book();
    const data = all.slice((page - 1) * pageSize, page * pageSize).map((contactId) => ({ contactId }));
    return { body: { data, pageInfo: { page, pageSize, totalRecord: all.length }, ...more(request) } };
  };

/** Releases requests one by one, so that a test decides what happens between two pages. */
export const gate = () => {
  const waiting: (() => void)[] = [];
  return {
    pass: () => new Promise<void>((resolve) => waiting.push(resolve)),
    open: async (): Promise<void> => {
      while (waiting.length === 0) await nextIteration();
      waiting.shift()?.();
    },
    waiting: () => waiting.length,
  };
};
