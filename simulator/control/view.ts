import { defaultAdvisor } from '../../lib/default-advisor';
import type { Simulation } from '../simulation';
import { memberIdOf, type Account } from '../state/account';
import { fullNameOf } from '../state/contact-book';
import { arrived, consentStateOf, freshLine, type Line } from '../state/line';
import { toldSettings } from '../state/settings';
import { friendPhones, seededConsent, type Contact } from '../state/seed';

/** The most phones that are shown, the latest first: a load test leaves 100,000. */
const shownPhones = 200;
const shownContacts = 20;

const phoneView = (account: Account, contact: Contact | undefined, line: Line, now: number) => ({
  phone: line.phone,
  name: contact === undefined ? '' : fullNameOf(contact),
  contactId: contact?.contactId ?? null,
  memberId: contact === undefined ? null : memberIdOf(contact.contactId),
  advisor: account.identity.advisor,
  consent: consentStateOf(line),
  declined: line.answer === 'declined',
  messages: line.messages.map((message) => ({
    ...message,
    arrived: arrived(message, now),
    from: message.kind === 'reply' ? line.phone : account.identity.name,
  })),
});

/** Numbers on which something has happened, then those of the seed that nobody has texted yet. */
const phonesIn = (account: Account, now: number) => {
  // Lines are in order of creation: of two touched within one millisecond, the one created later comes first.
  const lines = [...account.lines.values()].reverse().sort((one, other) => other.touched - one.touched);
  const busy = lines
    .slice(0, shownPhones)
    .map((line) => phoneView(account, account.contacts.byPhone(line.phone), line, now));
  const idle = friendPhones.flatMap((phone) => {
    const contact = account.lines.has(phone) ? undefined : account.contacts.byPhone(phone);
    if (contact === undefined) return [];
    return [
      phoneView(account, contact, freshLine(phone, seededConsent(contact.contactId), contact.created), now),
    ];
  });
  return [...busy, ...idle].slice(0, shownPhones);
};

const contactView = (account: Account, contact: Contact) => ({
  advisor: account.identity.advisor,
  contactId: contact.contactId,
  fullName: fullNameOf(contact),
  phone: contact.fields.phone ?? '',
  email: contact.fields.emailAddress ?? '',
  birthDate: contact.fields.birthDate ?? '',
  groupNames: contact.groupIds.map((groupId) => account.groups.get(groupId)?.name ?? ''),
});

/** Everything that the phones page shows, for one advisor or for all. */
export const stateView = (simulation: Simulation, advisor?: string) => {
  const { state, faults, ledger, clock } = simulation;
  const now = clock.now();
  const main = state.account(advisor ?? defaultAdvisor);
  const accounts = advisor === undefined ? [...state.accounts.values()] : [main];
  return {
    now,
    /**
     * How far the clock is ahead, in milliseconds. The page cannot know it: its browser may run on a machine with
     * another time.
     */
    ahead: now - Date.now(),
    advisors: [...state.accounts.keys()],
    identities: state.identities(),
    /** The number of phones on which something has happened, shown or not. */
    phoneCount:
      accounts.length > 1
        ? new Set(accounts.flatMap(({ lines }) => [...lines.keys()])).size
        : main.lines.size,
    phones: accounts.flatMap((account) => phonesIn(account, now)),
    contacts: {
      count: accounts.reduce((sum, { contacts }) => sum + contacts.count, 0),
      sample: main.contacts.page('fullName', 'asc', 1, shownContacts).map((one) => contactView(main, one)),
    },
    faults: faults.list(),
    settings: toldSettings(state.settings),
    received: ledger.received,
    hasFlows: simulation.hasFlows(),
  };
};

export type StateView = ReturnType<typeof stateView>;

/** One page of the address book of an advisor, or of all, filtered by the text typed on the page. */
export const contactsView = (
  { state }: Simulation,
  advisor: string | undefined,
  page: number,
  pageSize: number,
  filter: string,
) => {
  const main = state.account(advisor ?? defaultAdvisor);
  const accounts = advisor === undefined ? [...state.accounts.values()] : [main];
  const wanted = filter.toLowerCase();
  const isWanted = (contact: Contact): boolean =>
    wanted === '' ||
    fullNameOf(contact).toLowerCase().includes(wanted) ||
    contact.fields.phone?.includes(wanted) === true ||
    contact.fields.emailAddress?.includes(wanted) === true;
  const found = accounts.flatMap((account) =>
    [...account.contacts.all()].filter(isWanted).map((contact) => ({ account, contact })),
  );
  return {
    data: found
      .slice((page - 1) * pageSize, page * pageSize)
      .map(({ account, contact }) => contactView(account, contact)),
    total: found.length,
  };
};
