import { defaultAdvisor } from '../state/identities';
import { showClock, simulatorNow, startClock } from './clock';
import { firstPage, onTurn, showContacts } from './contacts';
import { control } from './control';
import { byId, element } from './dom';
import { showFaults, startFaults } from './faults';
import { follow } from './live';
import { showMessages } from './messages';
import { displayName, readableNumber } from './phone';
import type { PhoneActions } from './phone';
import { showPhones } from './phones';
import { showProfile } from './profile';
import { showSettings } from './settings';
import type { Message, Phone, SimulatorState } from './shape';
import { startTabs } from './tabs';
import type { Tab } from './tabs';
import { clearToast, complain, notice, startToast } from './toast';
import { listed, number, say } from './words';

const advisorField = byId('advisor-field', HTMLElement);
const advisor = byId('advisor', HTMLSelectElement);
const filter = byId('filter', HTMLInputElement);
const live = byId('live', HTMLElement);
const confirmReset = byId('confirm', HTMLDialogElement);

const older = byId('older-phones', HTMLElement);

const everybody = '';
let state: SimulatorState | undefined;
let tab: Tab = 'phones';

/** Runs what a button asked for; the change itself comes back through the events. */
const act = (deed: Promise<void>): void => {
  clearToast();
  deed.catch(complain);
};

/** Silence is doing nothing: the simulator need not know of it, so it lives as long as the page. */
const silenced = new Set<string>();
const requestKey = (phone: Phone, request: Message): string =>
  `${phone.advisor} ${phone.phone} ${String(request.id)}`;

const actions: PhoneActions = {
  answer(phone, answer) {
    act(control.answer(phone.phone, phone.advisor, answer));
  },
  wipe(phone) {
    const name = listed(displayName(phone), readableNumber(phone.phone));
    act(
      control.answer(phone.phone, phone.advisor, 'reset').then(() => {
        notice(say('toast.wiped', { name }));
      }),
    );
  },
  silence(phone, request, silent) {
    if (silent) silenced.add(requestKey(phone, request));
    else silenced.delete(requestKey(phone, request));
    show();
  },
  isSilent: (phone, request) => silenced.has(requestKey(phone, request)),
};

const count = (id: string, value: number): void => {
  byId(id, HTMLElement).textContent = number(value);
};

const advisorName = (key: string): string =>
  state?.identities.find((identity) => identity.advisor === key)?.name ?? key;

const choice = (key: string): HTMLElement => {
  const name = advisorName(key);
  const label = key === everybody ? say('advisor.all') : name === key ? key : `${name} (${key})`;
  return element('option', { value: key }, label);
};

const showAdvisors = (advisors: readonly string[]): void => {
  const offered = [everybody, ...advisors];
  if ([...advisor.options].map((option) => option.value).join('\n') !== offered.join('\n')) {
    const chosen = advisor.value;
    advisor.replaceChildren(...offered.map(choice));
    advisor.value = offered.includes(chosen) ? chosen : everybody;
  }
  advisorField.hidden = advisors.length < 2;
};

const clearFilter = (): void => {
  filter.value = '';
  filter.focus();
  show();
};

/** An address book belongs to one advisor: with all of them chosen, the one every simulator has. */
const showAddressBook = (): void => {
  const whose = advisor.value === everybody ? defaultAdvisor : advisor.value;
  byId('whose', HTMLElement).textContent = say('contacts.whose', { name: advisorName(whose) });
  showContacts(whose, filter.value).catch(complain);
};

const show = (): void => {
  if (state === undefined) return;
  const { phones } = state;
  const now = simulatorNow();
  showAdvisors(state.advisors);
  count('phone-count', Math.max(state.phoneCount, phones.length));
  count(
    'message-count',
    phones.reduce((sum, phone) => sum + phone.messages.length, 0),
  );
  count('contact-count', state.contacts.count);
  const left = state.phoneCount - phones.length;
  older.hidden = left <= 0;
  older.textContent = say('phones.older', { count: number(left) });
  showFaults(state.faults);
  showSettings(state.settings, (settings) => {
    act(control.change(settings));
  });
  showProfile(state.settings.habits, (settings) => {
    act(control.change(settings));
  });
  if (tab === 'phones') showPhones({ phones, now, filter: filter.value, advisorName }, actions, clearFilter);
  if (tab === 'messages') showMessages(phones, now, filter.value);
  if (tab === 'contacts') showAddressBook();
};

onTurn(show);
startClock((seconds) => {
  act(control.advance(seconds));
});
startFaults(
  (fault) => {
    act(control.addFault(fault));
  },
  () => {
    act(control.clearFaults());
  },
);
startToast();
startTabs((chosen) => {
  tab = chosen;
  show();
});

byId('reset', HTMLButtonElement).addEventListener('click', () => {
  confirmReset.returnValue = '';
  confirmReset.showModal();
});
confirmReset.addEventListener('close', () => {
  if (confirmReset.returnValue === 'reset') act(control.reset());
});

const refresh = follow(
  async () => {
    state = await control.state(advisor.value);
    showClock(state.now, state.ahead);
    show();
  },
  (connection) => {
    live.dataset['state'] = connection;
    live.textContent = say(`connection.${connection}`);
  },
);
advisor.addEventListener('change', () => {
  firstPage();
  refresh();
});
filter.addEventListener('input', () => {
  firstPage();
  show();
});
