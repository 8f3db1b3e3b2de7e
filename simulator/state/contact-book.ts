import { z } from 'zod';
import type { ContactFields, sortFields } from '../contract/rules';
import {
  birthdayOn,
  contactSchema,
  firstContactId,
  seededContact,
  seededIndexOfPhone,
  type Contact,
} from './seed';
import { SortedIds, type SortKey } from './sorted-ids';

export type SortField = (typeof sortFields)[number];
export type Direction = 'asc' | 'desc';

export const contactBookSchema = z.object({
  seeded: z.int(),
  nextId: z.int(),
  deleted: z.array(z.int()),
  changed: z.array(contactSchema),
});
type ContactBookRecord = z.output<typeof contactBookSchema>;

export const emailStatuses = ['Active', 'Bounced', 'Unsubscribed'] as const;
/** The contract shows no values for this field (*Resources and their fields*, Gaps); to sort by it, they must differ. */
export const emailStatusOf = (contact: Contact): number =>
  contact.fields.emailAddress === undefined ? 2 : contact.contactId % 7 === 0 ? 1 : 0;

export const fullNameOf = (contact: Contact): string =>
  [contact.fields.firstName, contact.fields.lastName]
    .filter((part) => part !== undefined && part !== '')
    .join(' ');

/** The real day, not that of the simulator's clock: a flow that looks for birthdays uses the real one. */
const today = (): Date => new Date();

/**
 * An advisor's contacts. Those of the seed are computed when needed; only added, changed and deleted ones are stored.
 * Each order that was used is kept sorted as contacts come and go, so that the cost of a page depends on its length
 * alone.
 */
export class ContactBook {
  private readonly changed = new Map<number, Contact>();
  private readonly deleted: Set<number>;
  private readonly owners = new Map<string, number[]>();
  private readonly orders = new Map<SortField, SortedIds>();
  private readonly seeded: number;
  private nextId: number;

  constructor(
    record: ContactBookRecord,
    private readonly now: () => number,
    private readonly groupExists: (groupId: number) => boolean,
  ) {
    this.seeded = record.seeded;
    this.nextId = record.nextId;
    this.deleted = new Set(record.deleted);
    for (const contact of record.changed) this.hold(contact);
  }

  static fresh(seeded: number): ContactBookRecord {
    return { seeded, nextId: firstContactId + seeded, deleted: [], changed: [] };
  }

  record(): ContactBookRecord {
    return {
      seeded: this.seeded,
      nextId: this.nextId,
      deleted: [...this.deleted],
      changed: [...this.changed.values()],
    };
  }

  get count(): number {
    return this.nextId - firstContactId - this.deleted.size;
  }

  get(contactId: number): Contact | undefined {
    const contact = this.held(contactId) ?? this.untouched(contactId);
    if (contact === undefined || contact.groupIds.every(this.groupExists)) return contact;
    return { ...contact, groupIds: contact.groupIds.filter(this.groupExists) };
  }

  byPhone(phone: string): Contact | undefined {
    const index = seededIndexOfPhone(phone);
    const untouched =
      index === undefined || this.changed.has(firstContactId + index)
        ? undefined
        : this.untouched(firstContactId + index);
    const [first] = this.owners.get(phone) ?? [];
    const held = first === undefined ? undefined : this.held(first);
    if (untouched === undefined || held === undefined) return untouched ?? held;
    return untouched.contactId < held.contactId ? untouched : held;
  }

  add(fields: ContactFields, source: number): Contact {
    const now = this.now();
    const contact = { contactId: this.nextId++, fields, source, created: now, modified: now, groupIds: [] };
    this.hold(contact);
    for (const order of this.orders.values()) order.add(contact.contactId);
    return contact;
  }

  /** Returns the contact as it was before. */
  change(contactId: number, change: (contact: Contact) => Partial<Contact>): Contact | undefined {
    const before = this.get(contactId);
    if (before === undefined) return undefined;
    for (const order of this.orders.values()) order.remove(contactId);
    this.letGo(contactId);
    const after = { ...before, ...change(before), modified: this.now() };
    const sameBirthday = after.fields.birthDate === before.fields.birthDate;
    this.hold({ ...after, bornToday: sameBirthday ? before.bornToday : undefined });
    for (const order of this.orders.values()) order.add(contactId);
    return before;
  }

  /** Returns the removed contact. */
  remove(contactId: number): Contact | undefined {
    const before = this.get(contactId);
    if (before === undefined) return undefined;
    for (const order of this.orders.values()) order.remove(contactId);
    this.letGo(contactId);
    this.deleted.add(contactId);
    return before;
  }

  page(sortBy: SortField, direction: Direction, page: number, pageSize: number): Contact[] {
    return this.order(sortBy)
      .slice((page - 1) * pageSize, pageSize, direction)
      .map((contactId) => this.known(contactId));
  }

  *all(): Iterable<Contact> {
    for (let contactId = firstContactId; contactId < this.nextId; contactId++) {
      const contact = this.get(contactId);
      if (contact !== undefined) yield contact;
    }
  }

  /** Removing a group changes the group count of all its members. */
  groupsChanged(): void {
    this.orders.delete('groupCount');
  }

  private order(sortBy: SortField): SortedIds {
    let order = this.orders.get(sortBy);
    if (order === undefined) {
      // Ids are assigned in order of creation, so the default order does not need the contacts.
      const keyOf = (contactId: number): SortKey =>
        sortBy === 'dateTimeCreated' ? contactId : this.sortKey(sortBy, this.known(contactId));
      order = new SortedIds(this.ids(), keyOf);
      this.orders.set(sortBy, order);
    }
    return order;
  }

  private sortKey(sortBy: Exclude<SortField, 'dateTimeCreated'>, contact: Contact): SortKey {
    switch (sortBy) {
      case 'fullName':
        return fullNameOf(contact).toLowerCase();
      case 'email':
        return contact.fields.emailAddress?.toLowerCase() ?? '';
      case 'emailStatus':
        return emailStatuses[emailStatusOf(contact)] ?? '';
      case 'groupCount':
        return contact.groupIds.length;
      case 'source':
        return contact.source;
    }
  }

  private ids(): number[] {
    const ids: number[] = [];
    for (let contactId = firstContactId; contactId < this.nextId; contactId++) {
      if (!this.deleted.has(contactId)) ids.push(contactId);
    }
    return ids;
  }

  private known(contactId: number): Contact {
    const contact = this.get(contactId);
    if (contact === undefined)
      throw new Error(`contact ${String(contactId)} is in an order but not in the book`);
    return contact;
  }

  private untouched(contactId: number): Contact | undefined {
    const index = contactId - firstContactId;
    if (!Number.isInteger(index) || index < 0 || index >= this.seeded || this.deleted.has(contactId))
      return undefined;
    return seededContact(index, today);
  }

  private held(contactId: number): Contact | undefined {
    const contact = this.changed.get(contactId);
    if (contact?.bornToday === undefined) return contact;
    const { birthDate = '' } = contact.fields;
    return {
      ...contact,
      fields: { ...contact.fields, birthDate: birthdayOn(today(), birthDate.slice(0, 4)) },
    };
  }

  private hold(contact: Contact): void {
    this.changed.set(contact.contactId, contact);
    const { phone } = contact.fields;
    if (phone === undefined) return;
    const owners = this.owners.get(phone);
    if (owners === undefined) this.owners.set(phone, [contact.contactId]);
    else owners.push(contact.contactId);
  }

  private letGo(contactId: number): void {
    const phone = this.changed.get(contactId)?.fields.phone;
    this.changed.delete(contactId);
    if (phone === undefined) return;
    const left = (this.owners.get(phone) ?? []).filter((owner) => owner !== contactId);
    if (left.length === 0) this.owners.delete(phone);
    else this.owners.set(phone, left);
  }
}
