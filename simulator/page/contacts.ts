import { control } from './control';
import { byId, element, showList } from './dom';
import { wantedBy } from './filter';
import { readableNumber } from './phone';
import type { ShownContact } from './shape';
import { number, say } from './words';

const pageSize = 25;

const rows = byId('contact-rows', HTMLElement);
const empty = byId('contacts-empty', HTMLElement);
const previous = byId('previous', HTMLButtonElement);
const next = byId('next', HTMLButtonElement);
const pageOf = byId('page-of', HTMLElement);
let page = 1;
let asked = 0;

const draw = (contact: ShownContact, advisorName: (advisor: string) => string): HTMLElement =>
  element(
    'tr',
    {},
    element(
      'td',
      { class: 'person' },
      element('b', { dir: 'auto' }, contact.fullName || say('phone.noName')),
    ),
    element('td', { class: 'whose-column', dir: 'auto' }, advisorName(contact.advisor)),
    element('td', { class: 'phone-number' }, readableNumber(contact.phone)),
    element('td', { dir: 'auto' }, contact.email),
    element('td', { dir: 'auto' }, contact.groupNames.join(', ')),
    element('td', { class: 'number' }, String(contact.contactId)),
  );

/** Contacts stay in the simulator, which may have 100,000: the page fetches only the page that is shown. */
export const showContacts = async (
  advisor: string,
  filter: string,
  advisorName: (advisor: string) => string,
): Promise<void> => {
  const question = ++asked;
  const answer = await control.contacts(advisor, page, pageSize, wantedBy(filter));
  if (question !== asked) return;
  const pages = Math.max(1, Math.ceil(answer.total / pageSize));
  if (page > pages) {
    page = pages;
    await showContacts(advisor, filter, advisorName);
    return;
  }
  showList(rows, answer.data, {
    key: (contact) => `${contact.advisor} ${String(contact.contactId)}`,
    version: (contact) => JSON.stringify(contact),
    draw: (contact) => draw(contact, advisorName),
  });
  empty.hidden = answer.total > 0;
  empty.textContent = say(filter.trim() === '' ? 'contacts.none' : 'contacts.noMatch');
  pageOf.textContent = say('contacts.page', { page: number(page), pages: number(pages) });
  previous.disabled = page <= 1;
  next.disabled = page >= pages;
};

export const firstPage = (): void => {
  page = 1;
};

export const onTurn = (turned: () => void): void => {
  previous.addEventListener('click', () => {
    page = Math.max(1, page - 1);
    turned();
  });
  next.addEventListener('click', () => {
    page += 1;
    turned();
  });
};
