import { Chains } from './chains';
import { Column, Few, none, Rows, TextColumn } from './columns';
import { Lookup } from './lookup';
import { Paces, shareOf, type Pace } from './schedule';
import { SeenColumn } from './seen';
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

const idLength = 22;
const shareFor = (advisor: string, subject: StoredSubject): number =>
  shareOf(`${advisor}\n${typeof subject === 'string' ? subject : `#${String(subject)}`}`);

const allOf = (chains: Chains, list: number): Wait[] => {
  const waits: Wait[] = [];
  for (let row = chains.firstOf(list); row !== none; row = chains.afterOf(row)) waits.push(row as Wait);
  return waits;
};

/** All waits of an environment, and what they look at: in columns, for there may be a hundred thousand. */
export class Book {
  private readonly advisors = new Few<string>();
  private readonly subjects = new Subjects();
  private readonly paces = new Paces();

  private readonly waits = new Rows();
  private readonly owners = new Column(Int32Array, none);
  private readonly messages = new TextColumn(idLength);
  private readonly indexes = new Column(Int32Array, 0);
  private readonly starts = new Column(Float64Array, 0);
  private readonly pace = new Column(Int32Array, 0);
  private readonly target = new Column(Int32Array, none);
  private readonly pack = new Column(Int32Array, none);
  /** Those of each target, in the order of arrival. */
  private readonly inTarget = new Chains();
  /** Those of each owner, in the order in which they began to look. */
  private readonly ofOwner = new Chains();

  private readonly targets = new Rows();
  private readonly lookup = new Lookup((target) => this.share.get(target));
  private readonly advisor = new Column(Int32Array, 0);
  private readonly subject = new Column(Float64Array, 0);
  private readonly share = new Column(Float64Array, 0);
  private readonly polling = new Column(Uint8Array, 0);
  private readonly seen = new SeenColumn();

  /** A wait that looks at nothing yet. */
  enter(owner: number, messageId: string, index: number): Wait {
    const wait = this.waits.take() as Wait;
    this.owners.set(wait, owner);
    this.messages.set(wait, messageId);
    this.indexes.set(wait, index);
    this.target.set(wait, none);
    this.pack.set(wait, none);
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

  /** Where its owner keeps it; undefined when that is in no pack. */
  packOf(wait: Wait): number | undefined {
    const pack = this.pack.get(wait);
    return pack === none ? undefined : pack;
  }

  setPack(wait: Wait, pack: number | undefined): void {
    this.pack.set(wait, pack ?? none);
  }

  /** Lets a wait look at something, together with those that do already. */
  putIn(wait: Wait, { advisor, subject, start, pace }: Begun): Target {
    const share = shareFor(advisor, subject);
    const target = this.findBy(share, advisor, subject) ?? this.open(share, advisor, subject);
    this.starts.set(wait, start);
    this.pace.set(wait, this.paces.numberOf(pace));
    this.target.set(wait, target);
    this.inTarget.insert(target, wait, this.placeIn(target, wait));
    const owner = this.ownerOf(wait);
    this.ofOwner.insert(owner, wait, this.ofOwner.lastOf(owner));
    return target;
  }

  /** Takes a wait out of its target. */
  takeOut(wait: Wait): void {
    this.inTarget.remove(this.targetOf(wait), wait);
    this.ofOwner.remove(this.ownerOf(wait), wait);
    this.target.set(wait, none);
  }

  /** Those of an owner that look at something. */
  waitsOf(owner: number): Wait[] {
    return allOf(this.ofOwner, owner);
  }

  /** What these look at, or as much of it as is for one subject. */
  targetsOf(owner: number, subject?: StoredSubject): Set<Target> {
    const wanted = subject === undefined ? undefined : this.subjects.find(subject);
    const found = new Set<Target>();
    for (const wait of this.waitsOf(owner)) {
      const target = this.targetOf(wait);
      if (subject === undefined || this.subject.get(target) === wanted) found.add(target);
    }
    return found;
  }

  find(advisor: string, subject: StoredSubject): Target | undefined {
    return this.findBy(shareFor(advisor, subject), advisor, subject);
  }

  /** Those whose number is, as far as was seen, this member's, in the order of arrival. */
  seenAs(advisor: string, memberId: number): Target[] {
    const of = this.advisors.find(advisor);
    const found: (readonly [firstId: string, target: Target])[] = [];
    for (let target = 0; target < this.targets.size; target++) {
      const isIt = this.seen.isOf(target, memberId) && this.advisor.get(target) === of;
      const first = this.inTarget.firstOf(target);
      if (isIt && first !== none) found.push([this.idOf(first as Wait), target as Target]);
    }
    return found.sort(([one], [other]) => (one < other ? -1 : 1)).map(([, target]) => target);
  }

  /** In the order of arrival. */
  waitsIn(target: Target): Wait[] {
    return allOf(this.inTarget, target);
  }

  isEmpty(target: Target): boolean {
    return this.inTarget.firstOf(target) === none;
  }

  isAlone(wait: Wait): boolean {
    return this.inTarget.lastOf(this.targetOf(wait)) === wait && this.inTarget.beforeOf(wait) === none;
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
    return this.seen.get(target);
  }

  see(target: Target, status: ConsentStatus): void {
    this.seen.set(target, status);
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
    this.lookup.remove(target);
    if (!this.isLookedAt(target)) this.targets.giveBack(target);
  }

  private findBy(share: number, advisor: string, subject: StoredSubject): Target | undefined {
    const of = this.advisors.find(advisor);
    const number = this.subjects.find(subject);
    return this.lookup.find(
      share,
      (target) => this.subject.get(target) === number && this.advisor.get(target) === of,
    ) as Target | undefined;
  }

  private open(share: number, advisor: string, subject: StoredSubject): Target {
    const target = this.targets.take() as Target;
    this.advisor.set(target, this.advisors.numberOf(advisor));
    this.subject.set(target, this.subjects.numberOf(subject));
    this.share.set(target, share);
    this.seen.clear(target);
    this.lookup.add(target);
    return target;
  }

  /** After whom it arrived. */
  private placeIn(target: Target, wait: Wait): number {
    let before = this.inTarget.lastOf(target);
    if (before === none) return none;
    const id = this.idOf(wait);
    while (before !== none && this.idOf(before as Wait) > id) before = this.inTarget.beforeOf(before);
    return before;
  }
}
