import should from 'should';
import { hour } from '../../../lib/durations';
import { backoff, decide, doubtAfter, readRetryAfter } from '../../../lib/service/retry';
import { RetryBudget } from '../../../lib/service/limits';
import type { RepeatKind } from '../../../lib/service/endpoints';
import type { Course, Decision, Happened } from '../../../lib/service/retry';
import type { RepeatSends } from '../../../lib/service/retry';

const happenings = {
  done: { what: 'done' },
  unreached: { what: 'unreached' },
  broken: { what: 'broken' },
  gateway: { what: 'gateway' },
  unauthorized: { what: 'unauthorized' },
  limited: { what: 'limited', retryAfter: 60_000 },
  'retryable 502': { what: 'problem', status: 502, retryable: true },
  'final 500': { what: 'problem', status: 500, retryable: false },
  'problem 404': { what: 'problem', status: 404, retryable: false },
  'bare 404': { what: 'refused', status: 404 },
  redirect: { what: 'refused', status: 307 },
  'unfit 200': { what: 'refused', status: 200 },
} as const satisfies Record<string, Happened>;

type Name = keyof typeof happenings;

/** Columns: read, replace, delete; once with `never`, `contract`, `always`. */
const columns: readonly (readonly [RepeatKind, readonly RepeatSends[]])[] = [
  ['read', ['never', 'contract', 'always']],
  ['replace', ['never', 'contract', 'always']],
  ['delete', ['never', 'contract', 'always']],
  ['once', ['never']],
  ['once', ['contract']],
  ['once', ['always']],
];

const fresh: Course = { retried: 0, refreshed: false, limited: 0, limitedFor: 0, doubt: 'none' };
const spent: Course = { retried: 4, refreshed: true, limited: 60, limitedFor: hour, doubt: 'none' };

const tables: readonly {
  title: string;
  course: Course;
  budget: number;
  rows: Record<Name, string>;
}[] = [
  {
    title: 'at first',
    course: fresh,
    budget: 500,
    rows: {
      done: 'succeed succeed succeed succeed succeed succeed',
      unreached: 'repeat repeat repeat repeat repeat repeat',
      broken: 'repeat repeat repeat unknown unknown repeat',
      gateway: 'repeat repeat repeat unknown unknown repeat',
      unauthorized: 'refresh refresh refresh refresh refresh refresh',
      limited: 'pause pause pause pause pause pause',
      'retryable 502': 'repeat repeat repeat answered repeat repeat',
      'final 500': 'answered answered answered answered answered answered',
      'problem 404': 'answered answered answered answered answered answered',
      'bare 404': 'answered answered answered answered answered answered',
      redirect: 'answered answered answered answered answered answered',
      'unfit 200': 'answered answered answered answered answered answered',
    },
  },
  {
    title: 'with the retry budget empty',
    course: fresh,
    budget: 4.5,
    rows: {
      done: 'succeed succeed succeed succeed succeed succeed',
      unreached: 'network network network network network network',
      broken: 'network unknown unknown unknown unknown unknown',
      gateway: 'network unknown unknown unknown unknown unknown',
      unauthorized: 'refresh refresh refresh refresh refresh refresh',
      limited: 'pause pause pause pause pause pause',
      'retryable 502': 'answered answered answered answered answered answered',
      'final 500': 'answered answered answered answered answered answered',
      'problem 404': 'answered answered answered answered answered answered',
      'bare 404': 'answered answered answered answered answered answered',
      redirect: 'answered answered answered answered answered answered',
      'unfit 200': 'answered answered answered answered answered answered',
    },
  },
  {
    title: 'when retries, refresh and the hour are used up',
    course: spent,
    budget: 500,
    rows: {
      done: 'succeed succeed succeed succeed succeed succeed',
      unreached: 'network network network network network network',
      broken: 'network unknown unknown unknown unknown unknown',
      gateway: 'network unknown unknown unknown unknown unknown',
      unauthorized: 'answered answered answered answered answered answered',
      limited: 'answered answered answered answered answered answered',
      'retryable 502': 'answered answered answered answered answered answered',
      'final 500': 'answered answered answered answered answered answered',
      'problem 404': 'answered answered answered answered answered answered',
      'bare 404': 'answered answered answered answered answered answered',
      redirect: 'answered answered answered answered answered answered',
      'unfit 200': 'answered answered answered answered answered answered',
    },
  },
  {
    title: 'when all is used up and an earlier attempt had no answer',
    course: { ...spent, doubt: 'unknown' },
    budget: 500,
    rows: {
      done: 'succeed succeed succeed succeed succeed succeed',
      unreached: 'network unknown unknown unknown unknown unknown',
      broken: 'network unknown unknown unknown unknown unknown',
      gateway: 'network unknown unknown unknown unknown unknown',
      unauthorized: 'answered unknown unknown unknown unknown unknown',
      limited: 'answered unknown unknown unknown unknown unknown',
      'retryable 502': 'answered unknown unknown unknown unknown unknown',
      'final 500': 'answered answered answered answered answered answered',
      'problem 404': 'answered answered succeed answered answered answered',
      'bare 404': 'answered unknown succeed unknown unknown unknown',
      redirect: 'answered unknown unknown unknown unknown unknown',
      'unfit 200': 'answered answered answered answered answered answered',
    },
  },
  {
    title: 'when all is used up and the service failed on an earlier attempt',
    course: { ...spent, doubt: 'problem' },
    budget: 500,
    rows: {
      done: 'succeed succeed succeed succeed succeed succeed',
      unreached: 'network unknown unknown unknown unknown unknown',
      broken: 'network unknown unknown unknown unknown unknown',
      gateway: 'network unknown unknown unknown unknown unknown',
      unauthorized: 'answered answered answered answered answered answered',
      limited: 'answered answered answered answered answered answered',
      'retryable 502': 'answered answered answered answered answered answered',
      'final 500': 'answered answered answered answered answered answered',
      'problem 404': 'answered answered succeed answered answered answered',
      'bare 404': 'answered unknown succeed unknown unknown unknown',
      redirect: 'answered unknown unknown unknown unknown unknown',
      'unfit 200': 'answered answered answered answered answered answered',
    },
  },
  {
    title: 'when the service failed on an earlier attempt',
    course: { ...fresh, retried: 1, doubt: 'problem' },
    budget: 500,
    rows: {
      done: 'succeed succeed succeed succeed succeed succeed',
      unreached: 'repeat repeat repeat repeat repeat repeat',
      broken: 'repeat repeat repeat unknown unknown repeat',
      gateway: 'repeat repeat repeat unknown unknown repeat',
      unauthorized: 'refresh refresh refresh refresh refresh refresh',
      limited: 'pause pause pause pause pause pause',
      'retryable 502': 'repeat repeat repeat answered repeat repeat',
      'final 500': 'answered answered answered answered answered answered',
      'problem 404': 'answered answered succeed answered answered answered',
      'bare 404': 'answered unknown succeed unknown unknown unknown',
      redirect: 'answered unknown unknown unknown unknown unknown',
      'unfit 200': 'answered answered answered answered answered answered',
    },
  },
];

const short = (decision: Decision): string => {
  if (decision.do !== 'fail') return decision.do;
  return { answered: 'answered', network_error: 'network', outcome_unknown: 'unknown' }[decision.as];
};

describe('the retry decision', () => {
  for (const { title, course, budget, rows } of tables) {
    for (const [name, expected] of Object.entries(rows) as [Name, string][]) {
      expected.split(' ').forEach((word, column) => {
        const [kind, settings] = columns[column] ?? ['read', []];
        for (const repeatSends of settings) {
          it(`${title}, ${name} on a ${kind} with ${repeatSends}: ${word}`, () => {
            const rules = { repeatSends, retries: 4 };
            should(short(decide(kind, happenings[name], rules, course, budget, 0.5))).equal(word);
          });
        }
      });
    }
  }

  it('retries nothing that counts when retries is 0', () => {
    const rules = { repeatSends: 'always', retries: 0 } as const;
    should(short(decide('read', happenings.unreached, rules, fresh, 500, 0.5))).equal('network');
    should(short(decide('read', happenings.limited, rules, fresh, 500, 0.5))).equal('pause');
  });

  it('backs off with full jitter from 500 ms to at most 20 s', () => {
    should([0, 1, 2, 3, 4, 5, 6, 40].map((round) => backoff(round, 1))).eql([
      500, 1000, 2000, 4000, 8000, 16_000, 20_000, 20_000,
    ]);
    should(backoff(3, 0)).equal(0);
    should(backoff(3, 0.25)).equal(1000);
    const rules = { repeatSends: 'contract', retries: 4 } as const;
    const decision = decide('read', happenings.broken, rules, { ...fresh, retried: 2 }, 500, 0.5);
    should(decision).eql({ do: 'repeat', ms: 1000 });
  });

  it('pauses as long as the service asks, up to an hour, and backs off if it does not say', () => {
    const rules = { repeatSends: 'contract', retries: 4 } as const;
    const pause = (retryAfter: number | undefined, course = fresh): Decision =>
      decide('once', { what: 'limited', retryAfter }, rules, course, 0, 0.5);
    should(pause(90_000)).eql({ do: 'pause', ms: 90_000 });
    should(pause(undefined)).eql({ do: 'pause', ms: 250 });
    should(pause(0, { ...fresh, limited: 3 })).eql({ do: 'pause', ms: 2000 });
    should(pause(60_000, { ...fresh, limitedFor: hour - 60_000 })).eql({ do: 'pause', ms: 60_000 });
    should(pause(60_001, { ...fresh, limitedFor: hour - 60_000 })).eql({ do: 'fail', as: 'answered' });
  });

  it('remembers the worst uncertainty of all attempts', () => {
    should(doubtAfter('none', happenings.unreached)).equal('none');
    should(doubtAfter('none', happenings.limited)).equal('none');
    should(doubtAfter('none', happenings['retryable 502'])).equal('problem');
    should(doubtAfter('problem', happenings.gateway)).equal('unknown');
    should(doubtAfter('unknown', happenings.unauthorized)).equal('unknown');
    should(doubtAfter('unknown', happenings['retryable 502'])).equal('unknown');
  });
});

describe('Retry-After', () => {
  const now = Date.UTC(1994, 10, 6, 8, 49, 7);
  const cases: [string | undefined, number | undefined][] = [
    [undefined, undefined],
    ['', undefined],
    ['120', 120_000],
    [' 7 ', 7000],
    ['0', 0],
    ['100000000000', hour],
    ['9'.repeat(400), hour],
    ['Sun, 06 Nov 1994 08:49:37 GMT', 30_000],
    ['Sunday, 06-Nov-94 08:49:37 GMT', 30_000],
    ['Sun Nov  6 08:49:37 1994', 30_000],
    ['Sun, 06 Nov 1994 08:00:00 GMT', 0],
    ['Fri, 31 Dec 9999 23:59:59 GMT', hour],
    ['-5', undefined],
    ['1.5', 1500],
    ['Sun, 06 Nov 1994 09:49:37 +0100', 30_000],
    ['Sun, 06 Nov 1994 03:49:37 -0500', 30_000],
    ['1994-11-06T08:49:37Z', 30_000],
    ['1994-11-06T09:49:37+01:00', 30_000],
    ['soon', undefined],
    ['Someday, it will be', undefined],
  ];
  for (const [value, expected] of cases) {
    it(`${value === undefined ? 'missing' : `"${value.slice(0, 40)}"`} means ${String(expected)} ms`, () => {
      should(readRetryAfter(value, now)).equal(expected);
    });
  }

  it('as a date is counted from the date of the answer, because the clock of the service may be an hour off', () => {
    const [ahead, late] = ['Sun, 06 Nov 1994 09:49:37 GMT', 'Sun, 06 Nov 1994 07:49:37 GMT'];
    should(readRetryAfter(ahead, now, 'Sun, 06 Nov 1994 09:49:07 GMT')).equal(30_000);
    should(readRetryAfter(late, now, 'Sun, 06 Nov 1994 07:49:07 GMT')).equal(30_000);
    should(readRetryAfter(late, now, 'soon')).equal(0);
  });
});

describe('the retry budget', () => {
  it('allows a hundred retries, then one for every ten successes', () => {
    const budget = new RetryBudget();
    let repeats = 0;
    const repeatIfAllowed = (): void => {
      if (budget.left < RetryBudget.cost) return;
      budget.spend();
      repeats++;
    };
    for (let i = 0; i < 1000; i++) repeatIfAllowed();
    should(repeats).equal(100);
    for (let i = 0; i < 1000; i++) {
      repeatIfAllowed();
      budget.refund();
    }
    should(repeats).be.within(199, 200);
  });

  it('never exceeds its initial size', () => {
    const budget = new RetryBudget();
    const full = budget.left;
    budget.refund();
    should(budget.left).equal(full);
  });
});
