import fc from 'fast-check';
import should from 'should';
import { Book, type Wait } from '../../lib/consent/book';
import { recommended, shareOf } from '../../lib/consent/schedule';
import { Subjects } from '../../lib/consent/subjects';
import { arrivalId } from '../../lib/state/ids';

const idOfMessage = (number: number): string => `0mwhiof75${String(number).padStart(7, '0')}7633e8`;
const begun = (advisor: string, subject: string | number) => ({
  advisor,
  subject,
  start: 1,
  pace: recommended,
});

describe('the book of waits', () => {
  it('tells everyone apart, whatever is on record: numbers of 15 digits, members, and what is neither', () => {
    const all = [
      '+7',
      7,
      '+999999999999999',
      999_999_999_999_999,
      '+100000000000001',
      '+100000000000002',
      // Too long for a number.
      '+1000000000000000',
      '+10000000000000000001',
      '+10000000000000000002',
      1e15,
      0,
      Number.MAX_SAFE_INTEGER,
      Number.MAX_SAFE_INTEGER - 1,
      -1,
      -8,
      0.5,
      '7',
      '-8',
      '+07',
      '+0',
      '+',
      '',
      ' +7',
      '+7 ',
      '#7',
      'no number',
    ];
    const subjects = new Subjects();
    const numbers = all.map((each) => subjects.numberOf(each));
    should(new Set(numbers).size).equal(all.length);
    should(numbers.map((each) => subjects.at(each))).deepEqual(all);
    should(all.map((each) => subjects.find(each))).deepEqual(numbers);
    should(subjects.find('nobody')).be.undefined();

    const book = new Book();
    const targets = all.map((each, n) => book.putIn(book.enter(0, idOfMessage(n), 0), begun('one', each)));
    should(new Set(targets).size).equal(all.length);
    should(all.map((each) => book.find('one', each))).deepEqual(targets);
    should(targets.map((each) => book.subjectOf(each))).deepEqual(all);
    should(book.find('another', 7)).be.undefined();
  });

  it('tells the same number of two advisors apart, wherever the two are kept', () => {
    for (let round = 0; round < 100; round++) {
      const book = new Book();
      for (let n = 0; n < 15; n++) {
        for (const advisor of ['one', 'two']) {
          const subject = `+1202${String(100 * round + n)}`;
          const target = book.putIn(book.enter(0, idOfMessage(n), 0), begun(advisor, subject));
          should([book.advisorOf(target), book.subjectOf(target)]).deepEqual([advisor, subject]);
        }
      }
    }
  });

  it('keeps the place of one that is looked at until that ends, and uses it again then', () => {
    const book = new Book();
    const wait = book.enter(0, idOfMessage(1), 0);
    const target = book.putIn(wait, begun('one', '+7'));
    book.beginLook(target);
    book.takeOut(wait);
    book.close(target);
    const anew = book.putIn(wait, begun('one', '+7'));
    should(anew).not.equal(target);
    should([book.isLookedAt(target), book.isLookedAt(anew)]).deepEqual([true, false]);
    book.endLook(target);
    should(book.putIn(book.enter(0, idOfMessage(2), 0), begun('one', '+8'))).equal(target);
    should(book.find('one', '+7')).equal(anew);
  });

  it('lets a number take the same share of the allowed lateness as ever', () => {
    const book = new Book();
    const shareFor = (subject: string | number): number =>
      book.shareOf(book.putIn(book.enter(0, idOfMessage(1), 0), begun('Ann', subject)));
    should(shareFor('+12025550101')).equal(shareOf('Ann\n+12025550101'));
    should(shareFor(12)).equal(shareOf('Ann\n#12'));
  });

  it('keeps what was seen of each, and nothing of who was in its place before', () => {
    const book = new Book();
    const wait = book.enter(0, idOfMessage(1), 0);
    const target = book.putIn(wait, begun('one', '+7'));
    should(book.seenOf(target)).be.undefined();
    for (const status of [
      { memberId: 7, state: 'pending', lastChanged: 5 },
      { memberId: null, state: null, lastChanged: null },
      { memberId: 0, state: 'pending', lastChanged: 0 },
    ]) {
      book.see(target, status);
      should(book.seenOf(target)).deepEqual(status);
    }
    should(book.seenAs('one', 0)).deepEqual([target]);
    should(book.seenAs('another', 0)).deepEqual([]);
    book.takeOut(wait);
    book.close(target);
    const next = book.putIn(wait, begun('one', '+8'));
    should(next).equal(target);
    should(book.seenOf(next)).be.undefined();
    should(book.seenAs('one', 0)).deepEqual([]);
  });

  it('gives ids back as they were, of whatever length', () => {
    const book = new Book();
    const ids = [
      arrivalId(Date.now()),
      'short',
      '',
      'much longer than those that are made here',
      'ids in другом',
    ];
    const enter = (): Wait[] => ids.flatMap((id) => [book.enter(0, id, 0), book.enter(0, id, 12)]);
    for (let again = 0; again < 3; again++) {
      const waits = enter();
      should(waits.map((wait) => book.idOf(wait))).deepEqual(ids.flatMap((id) => [id, `${id}-0000012`]));
      for (const wait of again === 1 ? waits.reverse() : waits) book.strike(wait);
    }
  });

  it('is right about everything at any time, however many came and went, and does not grow for that', () => {
    interface Known {
      readonly wait: Wait;
      readonly id: string;
      readonly owner: number;
      readonly advisor: string;
      readonly subject: string | number;
    }
    const subjects = ['+1', '+2', '+100000000000001', 1, 2, 'no number'];
    const step = fc.record({
      owner: fc.nat({ max: 2 }),
      advisor: fc.constantFrom('one', 'two'),
      subject: fc.nat({ max: 1200 }),
      message: fc.nat({ max: 9999 }),
      index: fc.nat({ max: 3 }),
      /** So many are begun like it, and others end. */
      count: fc.constantFrom(1, 1, 1, 400),
      ends: fc.constantFrom(0, 1, 2, 300),
      at: fc.nat(),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40, size: 'max' }), (steps) => {
        const book = new Book();
        const known: Known[] = [];
        let most = 0;
        for (const { owner, advisor, subject, message, index, count, ends, at } of steps) {
          for (let n = 0; n < count; n++) {
            const of =
              subject + n < 1000 ? (subjects[(subject + n) % 6] ?? '') : `+1202${String(subject + n)}`;
            const wait = book.enter(owner, idOfMessage(message), index);
            known.push({ wait, id: book.idOf(wait), owner, advisor, subject: of });
            book.putIn(wait, begun(advisor, of));
          }
          most = Math.max(most, known.length);
          for (let n = 0; n < ends && known.length > 0; n++) {
            const [gone] = known.splice(at % known.length, 1);
            if (!gone) continue;
            const target = book.targetOf(gone.wait);
            book.takeOut(gone.wait);
            if (book.isEmpty(target)) book.close(target);
            book.strike(gone.wait);
          }
        }
        for (const { wait } of known) should(wait).be.below(most);
        for (const owner of [0, 1, 2]) {
          const own = known.filter((each) => each.owner === owner);
          should([...book.waitsOf(owner)]).deepEqual(own.map(({ wait }) => wait));
        }
        const byTarget = new Map<string, Known[]>();
        for (const each of known) {
          const name = JSON.stringify([each.advisor, each.subject]);
          byTarget.set(name, [...(byTarget.get(name) ?? []), each]);
          should(book.idOf(each.wait)).equal(each.id);
        }
        for (const together of byTarget.values()) {
          const [{ advisor, subject, wait: first }] = together as [Known];
          const target = book.find(advisor, subject);
          if (target === undefined) throw new Error('lost');
          should([book.advisorOf(target), book.subjectOf(target)]).deepEqual([advisor, subject]);
          // In the order of arrival; of equal ones the later comes later.
          const inOrder = [...together].sort((one, other) =>
            one.id < other.id ? -1 : Number(one.id > other.id),
          );
          should(book.waitsIn(target)).deepEqual(inOrder.map(({ wait }) => wait));
          should(together.length === 1).equal(book.isAlone(first));
        }
        for (const owner of [0, 1, 2]) book.strikeAllOf(owner);
        should(book.enter(0, '', 0)).be.below(Math.max(most, 1));
      }),
      { numRuns: 40 },
    );
  });
});
