import { z } from 'zod';
import { magicOf } from '../magic';
import type { AdvisorIdentity } from './identities';
import { ContactBook, contactBookSchema } from './contact-book';
import { GroupBook, groupBookSchema } from './group-book';
import { consentStateOf, freshLine, keepMessage, lineSchema, type ConsentState, type Line } from './line';
import { seededConsent, sourceOf, type Contact } from './seed';

export const accountSchema = z.object({
  contacts: contactBookSchema,
  groups: groupBookSchema,
  lines: z.array(lineSchema),
});
export type AccountRecord = z.output<typeof accountSchema>;

export const memberIdOf = (contactId: number): number => contactId + 700_000;
const contactIdOf = (memberId: number): number => memberId - 700_000;

const consentQuestion = (advisor: string): string =>
  `${advisor} would like to text you. Reply YES to agree or NO to decline.`;

/** What an account needs from the simulator around it. */
export interface AccountContext {
  now(): number;
  nextMessageId(): number;
  arrivesAt(when: number): void;
}

/** Everything that the service keeps for one advisor. */
export class Account {
  readonly contacts: ContactBook;
  readonly groups: GroupBook;
  readonly lines: Map<string, Line>;

  constructor(
    readonly identity: AdvisorIdentity,
    record: AccountRecord,
    private readonly around: AccountContext,
  ) {
    this.groups = new GroupBook(record.groups);
    this.contacts = new ContactBook(
      record.contacts,
      () => around.now(),
      (groupId) => this.groups.get(groupId) !== undefined,
    );
    this.lines = new Map(record.lines.map((line) => [line.phone, line]));
  }

  static fresh(contacts: number): AccountRecord {
    return { contacts: ContactBook.fresh(contacts), groups: GroupBook.fresh(contacts), lines: [] };
  }

  record(): AccountRecord {
    return {
      contacts: this.contacts.record(),
      groups: this.groups.record(),
      lines: [...this.lines.values()],
    };
  }

  /**
   * The contact of a number. Texting an unknown number creates one, and never changes an existing one (contract, *What
   * the service does*, 6).
   */
  contactFor(phone: string): Contact {
    return this.contacts.byPhone(phone) ?? this.contacts.add(this.newcomer(phone), sourceOf.texting);
  }

  /** The contact of a number, if there is one. Magic numbers have one from the start. */
  knownContact(phone: string): Contact | undefined {
    return magicOf(phone) === undefined ? this.contacts.byPhone(phone) : this.contactFor(phone);
  }

  phoneOfMember(memberId: number): string | undefined {
    return this.contacts.get(contactIdOf(memberId))?.fields.phone;
  }

  line(contact: Contact, phone: string): Line {
    let line = this.lines.get(phone);
    if (line === undefined) {
      const consented = magicOf(phone)?.consented === true || seededConsent(contact.contactId);
      line = freshLine(phone, consented, contact.created);
      this.lines.set(phone, line);
    }
    return line;
  }

  /** Returns the message id, which a scheduled text does not have yet. */
  deliver(line: Line, text: string, scheduledFor: number | null): number | null {
    const id = this.around.nextMessageId();
    const messageId = scheduledFor === null ? id : null;
    keepMessage(line, { id, at: this.around.now(), kind: 'text', text, messageId, scheduledFor });
    if (scheduledFor !== null) this.around.arrivesAt(scheduledFor);
    return messageId;
  }

  ask(line: Line): ConsentState {
    if (consentStateOf(line) === 'none') line.lastChanged = this.around.now();
    line.asked = true;
    line.checks = 0;
    this.note(line, 'consent-request', consentQuestion(this.identity.name));
    const answers = magicOf(line.phone)?.answers;
    if (answers === 'declines') this.answer(line, 'declined');
    else if (answers?.afterChecks === 0) this.answer(line, 'accepted');
    return consentStateOf(line);
  }

  /** Called for each check of the consent status: some magic numbers accept after a few checks. */
  check(line: Line): ConsentState {
    const answers = magicOf(line.phone)?.answers;
    if (
      line.asked &&
      line.answer === null &&
      typeof answers === 'object' &&
      line.checks++ >= answers.afterChecks
    ) {
      this.answer(line, 'accepted');
    }
    return consentStateOf(line);
  }

  answer(line: Line, answer: 'accepted' | 'declined'): void {
    line.answer = answer;
    line.lastChanged = this.around.now();
    this.note(line, 'reply', answer === 'accepted' ? 'YES' : 'NO');
  }

  forgetPhone(phone: string): void {
    this.lines.delete(phone);
  }

  private note(line: Line, kind: 'consent-request' | 'reply', text: string): void {
    const id = this.around.nextMessageId();
    keepMessage(line, { id, at: this.around.now(), kind, text, messageId: null, scheduledFor: null });
  }

  private newcomer(phone: string): Contact['fields'] {
    const magic = magicOf(phone);
    if (magic === undefined) return { phone };
    const [firstName = '', ...rest] = magic.name.split(' ');
    return { phone, firstName, ...(rest.length === 0 ? {} : { lastName: rest.join(' ') }) };
  }
}
