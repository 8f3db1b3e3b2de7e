import type { Operation } from '../state/store';
import { timetable } from './records';

interface Move {
  readonly from: Buffer | undefined;
  readonly to: Buffer;
  isWritten: boolean;
}

/** When so many moves wait, they are written. */
const mostMoves = 1000;

/**
 * Moves of waits in the timetable that are not saved yet. They are written with the next commit, or after a while: a look
 * that changes nothing else needs no commit of its own. If they are lost in a crash, looks come early.
 */
export class Moves {
  private readonly pending = new Map<string, Move>();

  constructor(
    private readonly saved: (id: string, to: Buffer) => void,
    /** Called with the place of a wait whose move was dropped because another process had the store. */
    private readonly lost: (from: Buffer) => void,
  ) {}

  has(id: string): boolean {
    return this.pending.has(id);
  }

  get isFull(): boolean {
    return this.pending.size >= mostMoves;
  }

  add(id: string, { from, to }: { readonly from: Buffer | undefined; readonly to: Buffer }): void {
    this.pending.set(id, { from, to, isWritten: false });
  }

  /** The operations to write now. */
  operations(): Operation[] {
    const operations: Operation[] = [];
    for (const move of this.pending.values()) {
      if (move.isWritten) continue;
      move.isWritten = true;
      if (move.from) operations.push({ table: timetable, remove: move.from });
      operations.push({ table: timetable, put: move.to, value: 0 });
    }
    return operations;
  }

  /** Called with the commit that has what `operations` gave. */
  written(commit: Promise<unknown>): void {
    const written = [...this.pending].filter(([, { isWritten }]) => isWritten);
    if (written.length === 0) return;
    const end = (isSaved: boolean) => (): void => {
      for (const [id, move] of written) {
        if (this.pending.get(id) !== move) continue;
        this.pending.delete(id);
        if (isSaved) this.saved(id, move.to);
        else this.lost(move.from ?? move.to);
      }
    };
    // The writer of the commit learns of a fault.
    commit.then(end(true), end(false));
  }
}
