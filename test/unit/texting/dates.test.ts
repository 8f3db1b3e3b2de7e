import { inspect } from 'node:util';
import should from 'should';
import { isOpen } from '../../../lib/guards/text-hours';
import { epochOf, isTimeZone, ownTimeZone } from '../../../lib/runtime/dates';

describe('a delivery date', () => {
  const utc = (text: string): number => Date.parse(text);

  const cases: [written: string, zone: string, moment: string][] = [
    ['2030-01-31T09:00', 'America/New_York', '2030-01-31T14:00:00Z'],
    ['2030-07-31T09:00', 'America/New_York', '2030-07-31T13:00:00Z'],
    ['2030-07-31 09:00:30', 'America/New_York', '2030-07-31T13:00:30Z'],
    ['2030-01-31', 'America/New_York', '2030-01-31T05:00:00Z'],
    ['2030-01-31T09:00', 'Europe/Berlin', '2030-01-31T08:00:00Z'],
    ['2030-01-31T09:00', 'Asia/Kolkata', '2030-01-31T03:30:00Z'],
    ['2030-01-31T09:00', 'Asia/Kathmandu', '2030-01-31T03:15:00Z'],
    ['2030-01-31T09:00', 'Pacific/Kiritimati', '2030-01-30T19:00:00Z'],
    ['2030-01-31T09:00', 'Pacific/Pago_Pago', '2030-01-31T20:00:00Z'],
    ['2030-01-31T09:00:00.250', 'UTC', '2030-01-31T09:00:00.250Z'],
    // Skipped by daylight saving: the later one.
    ['2030-03-10T02:30', 'America/New_York', '2030-03-10T07:30:00Z'],
    ['2030-03-31T02:30', 'Europe/Berlin', '2030-03-31T01:30:00Z'],
    ['2030-10-06T02:15', 'Australia/Lord_Howe', '2030-10-05T15:45:00Z'],
    ['2011-12-30T10:00', 'Pacific/Apia', '2011-12-30T20:00:00Z'],
    // Repeated when it ends: the earlier one.
    ['2030-11-03T01:30', 'America/New_York', '2030-11-03T05:30:00Z'],
    ['2030-10-27T02:30', 'Europe/Berlin', '2030-10-27T00:30:00Z'],
    ['2030-04-07T01:45', 'Australia/Lord_Howe', '2030-04-06T14:45:00Z'],
    // Just before and after a change.
    ['2030-03-10T01:59', 'America/New_York', '2030-03-10T06:59:00Z'],
    ['2030-03-10T03:00', 'America/New_York', '2030-03-10T07:00:00Z'],
    ['2030-11-03T00:59', 'America/New_York', '2030-11-03T04:59:00Z'],
    ['2030-11-03T02:00', 'America/New_York', '2030-11-03T07:00:00Z'],
    // A zone in the date takes precedence.
    ['2030-01-31T09:00Z', 'America/New_York', '2030-01-31T09:00:00Z'],
    ['2030-01-31T09:00+05:30', 'America/New_York', '2030-01-31T03:30:00Z'],
    ['2030-01-31T09:00:00-0800', 'America/New_York', '2030-01-31T17:00:00Z'],
    ['2030-01-31T09:00:00.123456Z', 'UTC', '2030-01-31T09:00:00.123Z'],
  ];
  for (const [written, zone, moment] of cases) {
    it(`${written} in ${zone} is ${moment}`, () => {
      should(new Date(epochOf(written, zone)).toISOString()).equal(new Date(moment).toISOString());
    });
  }

  it('without a zone, in an environment without one, is read in that of the process', () => {
    should(epochOf('2030-01-31T09:00')).equal(new Date(2030, 0, 31, 9).getTime());
    should(isTimeZone(ownTimeZone())).be.true();
  });

  for (const zone of ['', ':/etc/localtime'])
    it(`without a zone is read in that of the process, even with TZ="${zone}", which gives it no name`, () => {
      const { TZ } = process.env;
      process.env['TZ'] = zone;
      try {
        should(epochOf('2030-07-31T09:00')).equal(new Date(2030, 6, 31, 9).getTime());
      } finally {
        if (TZ === undefined) delete process.env['TZ'];
        else process.env['TZ'] = TZ;
      }
    });

  it('may be milliseconds, a string of them, or a Date', () => {
    const at = utc('2030-01-31T09:00:00Z');
    for (const value of [at, String(at), ` ${at} `, new Date(at)]) should(epochOf(value, 'UTC')).equal(at);
  });

  for (const value of [
    ...[1e12 + 0.5, 1e300, 8.64e15 + 1, NaN, Infinity, '99999999999999999', new Date(NaN)],
    ...['', 'tomorrow', '1/2/2030', '2030-02-30', '2030-13-01', '2030-01-31T25:00', '2030-01-31T09:61'],
    ...['2030-01-31T09:00+24:00', 'Thu, 31 Jan 2030 09:00', true, [1e12], {}, null],
  ]) {
    it(`is not ${inspect(value)}`, () => {
      should(epochOf(value, 'UTC')).be.NaN();
    });
  }
});

describe('a time zone', () => {
  for (const name of ['America/New_York', 'Europe/Berlin', 'UTC', 'GMT', 'EST5EDT', 'Asia/Kolkata'])
    it(`is ${name}`, () => {
      should(isTimeZone(name)).be.true();
    });
  for (const name of ['', 'Mars/Olympus', 'New York', '+01:00', '-08:00', 'GMT+25', 'EST', 'ast', 'BST'])
    it(`is not ${JSON.stringify(name)}`, () => {
      should(isTimeZone(name)).be.false();
    });
});

describe('a time zone from a message', () => {
  it('is forgotten when thousands of spellings came after it, and remembered until then', () => {
    const { DateTimeFormat } = Intl;
    let made = 0;
    Intl.DateTimeFormat = new Proxy(DateTimeFormat, {
      construct(target, given) {
        made += 1;
        return Reflect.construct(target, given) as object;
      },
    });
    /** A different case of letters for each number. */
    const spelt = (number: number): string =>
      [...'america/argentina/comodrivadavia']
        .map((letter, at) => ((number >> at) & 1 ? letter.toUpperCase() : letter))
        .join('');
    const hours = { from: 9 * 60, until: 17 * 60 };
    try {
      for (const use of [isTimeZone, (zone: string) => isOpen(hours, [zone], 0)]) {
        for (let number = 0; number < 3000; number++) use(spelt(number));
        made = 0;
        for (let times = 0; times < 3; times++) use(spelt(0));
        should(made).equal(1);
      }
    } finally {
      Intl.DateTimeFormat = DateTimeFormat;
    }
  });
});
