import should from 'should';
import type { Message } from '../../lib/runtime/red';
import type { Arrived } from './flow';

interface MessageError {
  readonly code: string;
  readonly message: string;
  readonly detail?: string;
  readonly retryable: boolean;
  readonly attempts: number;
  readonly source: unknown;
}

export const errorOf = ({ error }: Message): MessageError => {
  should(error).be.an.Object();
  return error as MessageError;
};

/** Outcomes leave as they settle: sorted in list order, for a test to compare. */
export const inOrder = (arrived: readonly Arrived[]): Arrived[] =>
  arrived.toSorted(
    (a, b) => (a.msg.parts as { index: number }).index - (b.msg.parts as { index: number }).index,
  );
