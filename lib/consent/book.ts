import { Column, Few, Rows, TextColumn } from './columns';
import { Paces, shareOf, type Pace } from './schedule';
import { Subjects, type StoredSubject } from './subjects';
import type { ConsentStatus } from './verdict';
import { waitId } from './wait-records';

declare const kind: unique symbol;
/** A row of the book: of use until the wait was told, and to be forgotten then, for another will get it. */
export type Wait = number & { readonly [kind]: 'wait' };
/** A number (or member) of an advisor that waits look at together; a row of the book while it has waits or is looked at. */
export type Target = number & { readonly [kind]: 'target' };

/** What a wait looks at, from when on and how often. */
export interface Begun {
  readonly advisor: string;
  readonly subject: StoredSubject;
  readonly start: number;
  readonly pace: Pace;
}

const none = -1;
const idLength = 22;
const orNull = (value: number): number | null => (Number.isNaN(value) ? null : value);

/** All waits of an environment, and what they look at: in columns, for there may be a hundred thousand. */
export class Book {
  private readonly advisors = new Few<string>();
  private readonly subjects = new Subjects();
  private readonly states = new Few<string | null>();
  private readonly paces = new Paces();

  private readonly waits = new Rows();
  private readonly owners = new Column(Int32Array, none);
  private readonly messages = new TextColumn(idLength);
  private readonly indexes = new Column(Int32Array, 0);
  private readonly starts = new Column(Float64Array, 0);
  private readonly pace = new Column(Int32Array, 0);
  private readonly target = new Column(Int32Array, none);
  /** Those of the same target, in the order of arrival. */
  private readonly before = new Column(Int32Array, none);
  private readonly after = new Column(Int32Array, none);

  private readonly targets = new Rows();
  private readonly found = new Map<string, Map<number, Target>>();
  private readonly advisor = new Column(Int32Array, 0);
  private readonly subject = new Column(Float64Array, 0);
  private readonly share = new Column(Float64Array, 0);
  private readonly first = new Column(Int32Array, none);
  private readonly last = new Column(Int32Array, none);
  private readonly polling = new Column(Uint8Array, 0);
  /** What was last seen: no state when nothing was. */
  private readonly seenState = new Column(Int32Array, none);
  private readonly seenMember = new Column(Float64Array, NaN);
  private readonly seenChange = new Column(Float64Array, NaN);

  /** A wait that looks at nothing yet. */
  enter(owner: number, messageId: string, index: number): Wait {
    const wait = this.waits.take() as Wait;
    this.owners.set(wait, owner);
    this.messages.set(wait, messageId);
    this.indexes.set(wait, index);
    this.target.set(wait, none);
    return wait;
  }

  /** Nobody needs it any more. */
  strike(wait: Wait): void {
    this.owners.set(wait, none);
    this.waits.giveBack(wait);
  }

  /** An owner has gone, and so has everybody who worked for it. */
  strikeAllOf(owner: number): void {
    for (let row = 0; row < this.waits.size; row++) {
      if (this.owners.get(row) === owner) this.strike(row as Wait);
    }
  }

  ownerOf(wait: Wait): number {
    return this.owners.get(wait);
  }

  messageIdOf(wait: Wait): string {
    return this.messages.get(wait);
  }

  indexOf(wait: Wait): number {
    return this.indexes.get(wait);
  }

  idOf(wait: Wait): string {
    return waitId(this.messageIdOf(wait), this.indexOf(wait));
  }

  startOf(wait: Wait): number {
    return this.starts.get(wait);
  }

  paceOf(wait: Wait): Pace {
    return this.paces.at(this.pace.get(wait));
  }

  /** Only of a wait that is in one. */
  targetOf(wait: Wait): Target {
    return this.target.get(wait) as Target;
  }

  /** Lets a wait look at something, together with those that do already. */
  putIn(wait: Wait, { advisor, subject, start, pace }: Begun): Target {
    const target = this.find(advisor, subject) ?? this.open(advisor, subject);
    this.starts.set(wait, start);
    this.pace.set(wait, this.paces.numberOf(pace));
    this.target.set(wait, target);
    let before = this.last.get(target);
    if (before !== none) {
      // The last to arrive is mostly the last to be put in.
      const id = this.idOf(wait);
      while (before !== none && this.idOf(before as Wait) > id) before = this.before.get(before);
    }
    const after = before === none ? this.first.get(target) : this.after.get(before);
    this.link(target, before, wait);
    this.link(target, wait, after);
    return target;
  }

  /** Takes a wait out of its target. */
  takeOut(wait: Wait): void {
    this.link(this.targetOf(wait), this.before.get(wait), this.after.get(wait));
    this.target.set(wait, none);
  }

  find(advisor: string, subject: StoredSubject): Target | undefined {
    const number = this.subjects.find(subject);
    return number === undefined ? undefined : this.found.get(advisor)?.get(number);
  }

  /** Those whose number is, as far as was seen, this member's. */
  seenAs(advisor: string, memberId: number): Target[] {
    return [...(this.found.get(advisor)?.values() ?? [])].filter(
      (target) => this.seenState.get(target) !== none && this.seenMember.get(target) === memberId,
    );
  }

  /** In the order of arrival. */
  waitsIn(target: Target): Wait[] {
    const waits: Wait[] = [];
    for (let wait = this.first.get(target); wait !== none; wait = this.after.get(wait))
      waits.push(wait as Wait);
    return waits;
  }

  isEmpty(target: Target): boolean {
    return this.first.get(target) === none;
  }

  isAlone(wait: Wait): boolean {
    return this.before.get(wait) === none && this.after.get(wait) === none;
  }

  advisorOf(target: Target): string {
    return this.advisors.at(this.advisor.get(target));
  }

  subjectOf(target: Target): StoredSubject {
    return this.subjects.at(this.subject.get(target));
  }

  /** As `shareOf` gives it. */
  shareOf(target: Target): number {
    return this.share.get(target);
  }

  seenOf(target: Target): ConsentStatus | undefined {
    const state = this.seenState.get(target);
    if (state === none) return undefined;
    return {
      memberId: orNull(this.seenMember.get(target)),
      state: this.states.at(state),
      lastChanged: orNull(this.seenChange.get(target)),
    };
  }

  see(target: Target, { memberId, state, lastChanged }: ConsentStatus): void {
    this.seenState.set(target, this.states.numberOf(state));
    this.seenMember.set(target, memberId ?? NaN);
    this.seenChange.set(target, lastChanged ?? NaN);
  }

  isLookedAt(target: Target): boolean {
    return this.polling.get(target) === 1;
  }

  beginLook(target: Target): void {
    this.polling.set(target, 1);
  }

  endLook(target: Target): void {
    this.polling.set(target, 0);
    if (this.isEmpty(target)) this.targets.giveBack(target);
  }

  /** Its last wait has left: who comes now looks anew. While it is looked at, its row stays its own. */
  close(target: Target): void {
    const advisor = this.advisorOf(target);
    const found = this.found.get(advisor);
    found?.delete(this.subject.get(target));
    if (found?.size === 0) this.found.delete(advisor);
    if (!this.isLookedAt(target)) this.targets.giveBack(target);
  }

  private open(advisor: string, subject: StoredSubject): Target {
    const target = this.targets.take() as Target;
    const number = this.subjects.numberOf(subject);
    this.advisor.set(target, this.advisors.numberOf(advisor));
    this.subject.set(target, number);
    this.share.set(
      target,
      shareOf(`${advisor}\n${typeof subject === 'string' ? subject : `#${String(subject)}`}`),
    );
    this.first.set(target, none);
    this.last.set(target, none);
    this.polling.set(target, 0);
    this.seenState.set(target, none);
    const found = this.found.get(advisor) ?? new Map<number, Target>();
    this.found.set(advisor, found.set(number, target));
    return target;
  }

  private link(target: Target, before: number, after: number): void {
    if (before === none) this.first.set(target, after);
    else this.after.set(before, after);
    if (after === none) this.last.set(target, before);
    else this.before.set(after, before);
  }
}
