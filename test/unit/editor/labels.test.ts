import { createRequire } from 'node:module';
import should from 'should';
import type { Say } from '../../../lib/editor/values';
import type { Values } from '../../../lib/runtime/settings';
import { momentOf, shortLabel } from '../../../lib/editor/words';
import { languages, stringsOf } from '../../support/locales/catalogues';

type Label = (values: Values, say: Say) => string;

/** By a computed path: code for the editor has globals that a test lacks. */
const labelOf = (name: string): Label =>
  (createRequire(__filename)(`../../../nodes/${name}/editor`) as { label: Label }).label;

const sayIn =
  (language: string, type: string): Say =>
  (key, parts = {}) => {
    const strings = { ...stringsOf(language, 'common.json'), ...stringsOf(language, `${type}.json`) };
    const text = strings[key] ?? key;
    return text.replaceAll(/__(\w+?)__/g, (_, part: string) => String(parts[part]));
  };

/** The little of the editor that a label uses: the language of its words, and an environment with a zone. */
const within = (language: string, act: () => void): void => {
  Object.assign(globalThis, {
    RED: {
      settings: {},
      nodes: {
        getType: () => ({ _: sayIn(language, 'advisor-environment') }),
        node: (id: string) => ({ timeZone: id }),
      },
    },
  });
  const own = Object.getOwnPropertyDescriptor(globalThis, 'navigator');
  Object.defineProperty(globalThis, 'navigator', { value: { languages: [language] }, configurable: true });
  try {
    act();
  } finally {
    Reflect.deleteProperty(globalThis, 'RED');
    if (own) Object.defineProperty(globalThis, 'navigator', own);
    else Reflect.deleteProperty(globalThis, 'navigator');
  }
};

const textAt = (time: Date): Values => ({
  schedule: 'at',
  text: 'Hi',
  textType: 'str',
  deliveryDate: time.toISOString(),
  deliveryDateType: 'str',
});

describe('the label of a node', () => {
  const sendText = labelOf('send-text');
  const checkConsent = labelOf('check-consent');
  const group = labelOf('group');

  it('is cut between characters, however many code points one has', () => {
    const family = '👨‍👩‍👧';
    shortLabel('😀'.repeat(20)).should.equal('😀'.repeat(20));
    shortLabel('😀'.repeat(21)).should.equal(`${'😀'.repeat(19)}…`);
    shortLabel(family.repeat(30)).should.equal(`${family.repeat(19)}…`);
    shortLabel(`Hi 🇩🇪${'é'.normalize('NFD').repeat(30)}`).should.equal(
      `Hi 🇩🇪${'é'.normalize('NFD').repeat(15)}…`,
    );
    for (let length = 1; length < 50; length += 1)
      shortLabel(`a${'😀'.repeat(length)}`).should.not.match(/\p{Surrogate}/u);
  });

  it('is cut between words if it is long, and stays on one line', () => {
    shortLabel('Hello Ann,\nhow are you today?').should.equal('Hello Ann, how are…');
    shortLabel('Hi').should.equal('Hi');
  });

  it('shows the year of a date in another year', () => {
    const now = new Date(2030, 5, 1, 12, 0);
    momentOf(new Date(2030, 5, 1, 9, 0), now, 'de').should.equal('09:00');
    momentOf(new Date(2030, 6, 1, 9, 0), now, 'de').should.not.match(/2030/);
    momentOf(new Date(2040, 0, 31, 9, 0), now, 'en-US').should.match(/31, 2040.*9:00/);
  });

  it('shows a time by the clocks of the environment, as its status does', () => {
    within('en-US', () => {
      const say = sayIn('en-US', 'advisor-send-text');
      const at = { ...textAt(new Date('2040-01-31T15:00:00Z')), environment: 'America/Chicago' };
      sendText(at, say).should.match(/Jan 31, 2040, 9:00\sAM$/);
      sendText({ ...at, deliveryDate: '2040-01-31T09:00' }, say).should.match(/Jan 31, 2040, 9:00\sAM$/);
      // No zone has this offset: it is shown wherever the test runs.
      const foreign = sendText({ ...at, deliveryDate: '2040-01-31T09:00:00-00:20' }, say);
      foreign.should.match(/Jan 31, 2040, 9:00\sAM UTC-0:20$/);
      sendText({ ...at, environment: 'Asia/Tokyo' }, say).should.match(/Feb 1, 2040, 12:00\sAM$/);
    });
  });

  const dates: Readonly<Record<string, string>> = {
    'en-US': 'text “Hi” on Jan 31, 2040, 9:00 AM',
    de: 'SMS „Hi“ am 31. Jan. 2040, 09:00',
    'es-ES': 'SMS «Hi» el 31 ene 2040, 9:00',
    ja: '2040年1月31日 9:00 にSMS「Hi」',
  };
  const today: Readonly<Record<string, RegExp>> = {
    'en-US': /^text “Hi” at 12:30\sPM$/,
    de: /^SMS „Hi“ um 12:30$/,
    'es-ES': /^SMS «Hi» hoy, 12:30$/,
    ja: /^12:30 にSMS「Hi」$/,
  };

  for (const language of languages) {
    it(`shows a date and a time of today as usual in ${language}`, () => {
      within(language, () => {
        const say = sayIn(language, 'advisor-send-text');
        const noon = new Date();
        noon.setHours(12, 30, 0, 0);
        // Versions of the language data differ in the kind of space before AM.
        const plain = (text: string): string => text.replaceAll(/\s/g, ' ');
        plain(sendText(textAt(new Date(2040, 0, 31, 9, 0)), say)).should.equal(dates[language]);
        sendText(textAt(noon), say).should.match(today[language] ?? /never/);
      });
    });

    it(`names in ${language} whom and what was typed in`, () => {
      const number = { phone: '+12025550113', phoneType: 'str' };
      const check = sayIn(language, 'advisor-check-consent');
      const labels = [
        checkConsent(number, check),
        checkConsent({ ...number, mode: 'wait' }, check),
        group({ operation: 'create', group: 'Friends', groupType: 'str' }, sayIn(language, 'advisor-group')),
      ];
      for (const label of labels) label.should.match(/\+12025550113|Friends/);
      new Set(labels).size.should.equal(3);
    });
  }

  it('names nobody who comes with the message, or is looked up by another id', () => {
    const say = sayIn('en-US', 'advisor-check-consent');
    checkConsent({ phone: 'phone', phoneType: 'msg' }, say).should.equal('check consent');
    checkConsent({ phone: '+12025550113', phoneType: 'str', by: 'memberId' }, say).should.equal(
      'check consent',
    );
    should(
      group({ operation: 'create', group: 'payload', groupType: 'msg' }, sayIn('en-US', 'advisor-group')),
    ).be.undefined();
  });
});
