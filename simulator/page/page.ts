import { showClock, simulatorNow, startClock } from './clock';
import { firstPage, onTurn, showContacts } from './contacts';
import { control } from './control';
import { byId, element } from './dom';
import { showFaults, startFaults } from './faults';
import { follow } from './live';
import { showMessages } from './messages';
import { displayName, phonesOf, readableNumber } from './phone';
import type { PhoneActions } from './phone';
import { showPhones } from './phones';
import { showProfile } from './profile';
import { showSettings } from './settings';
import type { ShownLine, PhoneMessage, SimulatorState } from './shape';
import { startTabs } from './tabs';
import type { Tab } from './tabs';
import { clearToast, complain, notice, startToast } from './toast';
import { listed, number, say } from './words';

const advisorField = byId('advisor-field', HTMLElement);
const advisor = byId('advisor', HTMLSelectElement);
const filter = byId('filter', HTMLInputElement);
const live = byId('live', HTMLElement);
const main = byId('main', HTMLElement);
const confirmReset = byId('confirm', HTMLDialogElement);

const older = byId('older-phones', HTMLElement);

const everybody = '';
let state: SimulatorState | undefined;
let tab: Tab = 'phones';

/** Runs the action of a button; the change itself comes back through the events. */
const act = (deed: Promise<void>): void => {
  clearToast();
  deed.catch(complain);
};

/**
 * Consent requests that somebody has left unanswered. The simulator need not know of them, so they last as long as the
 * page.
 */
const silenced = new Set<string>();
const requestKey = (line: ShownLine, request: PhoneMessage): string =>
  `${line.advisor} ${line.phone} ${String(request.id)}`;

const actions: PhoneActions = {
  answer(line, answer) {
    act(control.answer(line.phone, line.advisor, answer));
  },
  wipe(phone) {
    const name = listed(displayName(phone), readableNumber(phone.phone));
    act(
      Promise.all(phone.lines.map((line) => control.answer(line.phone, line.advisor, 'reset'))).then(() => {
        notice(say('toast.wiped', { name }));
      }),
    );
  },
  silence(line, request, silent) {
    if (silent) silenced.add(requestKey(line, request));
    else silenced.delete(requestKey(line, request));
    show();
  },
  isSilent: (line, request) => silenced.has(requestKey(line, request)),
};

const count = (id: string, value: number): void => {
  byId(id, HTMLElement).textContent = number(value);
};

const advisorName = (key: string): string =>
  state?.identities.find((identity) => identity.advisor === key)?.name ?? key;

const advisorChoice = (key: string): HTMLElement => {
  const name = advisorName(key);
  const label = key === everybody ? say('advisor.all') : name === key ? key : `${name} (${key})`;
  return element('option', { value: key }, label);
};

const showAdvisors = (advisors: readonly string[]): void => {
  const offered = [everybody, ...advisors];
  if ([...advisor.options].map((option) => option.value).join('\n') !== offered.join('\n')) {
    const chosen = advisor.value;
    advisor.replaceChildren(...offered.map(advisorChoice));
    advisor.value = offered.includes(chosen) ? chosen : everybody;
  }
  advisorField.hidden = advisors.length < 2;
};

const clearFilter = (): void => {
  filter.value = '';
  filter.focus();
  show();
};

const showAddressBook = (advisors: readonly string[]): void => {
  const [only] = advisor.value === everybody ? advisors : [advisor.value];
  byId('whose', HTMLElement).textContent =
    hasSeveral(advisors) || only === undefined
      ? say('contacts.ofAll')
      : say('contacts.whose', { name: advisorName(only) });
  showContacts(advisor.value, filter.value, advisorName).catch(complain);
};

const hasSeveral = (advisors: readonly string[]): boolean =>
  advisor.value === everybody && advisors.length > 1;

const show = (): void => {
  if (state === undefined) return;
  const { advisors, hasFlows } = state;
  const now = simulatorNow();
  showAdvisors(advisors);
  const phones = phonesOf(state.phones);
  const several = hasSeveral(advisors);
  main.classList.toggle('several', several);
  count('phone-count', Math.max(state.phoneCount, phones.length));
  count(
    'message-count',
    state.phones.reduce((sum, line) => sum + line.messages.length, 0),
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
  if (tab === 'phones') {
    const shown = { phones, now, filter: filter.value, advisorName, hasSeveral: several, hasFlows };
    showPhones(shown, actions, clearFilter);
  }
  if (tab === 'messages') showMessages(phones, now, filter.value, advisorName);
  if (tab === 'contacts') showAddressBook(advisors);
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
