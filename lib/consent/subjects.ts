import { Few } from './columns';

/** Whose consent a wait is for. */
export type Subject = { readonly phone: string } | { readonly memberId: number };

/** As it is on record: a phone number is a text, a member id a number. */
export type StoredSubject = string | number;

export const asStored = (subject: Subject): StoredSubject =>
  'phone' in subject ? subject.phone : subject.memberId;
export const subjectIn = (stored: StoredSubject): Subject =>
  typeof stored === 'string' ? { phone: stored } : { memberId: stored };

/** As many digits as a number in E.164 has at most; a double holds them exactly. */
const phone = /^\+[1-9]\d{0,14}$/;
const abovePhones = 1e15;

/** The digits of a phone number; member ids are below zero. */
const plainNumberOf = (stored: StoredSubject): number | undefined => {
  if (typeof stored === 'string') return phone.test(stored) ? Number(stored) : undefined;
  return Number.isSafeInteger(stored) && stored >= 0 ? -stored - 1 : undefined;
};

/** Subjects as one number each. Whatever is neither a plain phone number nor a plain id is kept, and numbered. */
export class Subjects {
  private readonly others = new Few<StoredSubject>();

  numberOf(stored: StoredSubject): number {
    return plainNumberOf(stored) ?? abovePhones + this.others.numberOf(stored);
  }

  /** Undefined for what never had a number here. */
  find(stored: StoredSubject): number | undefined {
    const plain = plainNumberOf(stored);
    if (plain !== undefined) return plain;
    const other = this.others.find(stored);
    return other === undefined ? undefined : abovePhones + other;
  }

  at(number: number): StoredSubject {
    if (number >= abovePhones) return this.others.at(number - abovePhones);
    return number < 0 ? -number - 1 : `+${String(number)}`;
  }
}
