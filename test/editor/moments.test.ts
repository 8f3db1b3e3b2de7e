import { wallClock, withZone } from '../../lib/editor/moments';

/** Node reads TZ whenever a date is made. */
const within = (zone: string, act: () => void): void => {
  const before = process.env['TZ'];
  process.env['TZ'] = zone;
  try {
    act();
  } finally {
    if (before === undefined) delete process.env['TZ'];
    else process.env['TZ'] = before;
  }
};

describe('a moment chosen by the clock on the wall', () => {
  const cases: [zone: string, wall: string, written: string][] = [
    ['UTC', '2030-01-31T09:00', '2030-01-31T09:00:00+00:00'],
    ['America/Chicago', '2030-01-31T09:00', '2030-01-31T09:00:00-06:00'],
    ['America/Chicago', '2030-07-31T09:00', '2030-07-31T09:00:00-05:00'],
    ['Asia/Kolkata', '2030-01-31T09:05', '2030-01-31T09:05:00+05:30'],
    ['America/St_Johns', '2030-01-31T23:59', '2030-01-31T23:59:00-03:30'],
  ];

  for (const [zone, wall, written] of cases) {
    it(`keeps its zone: ${wall} in ${zone} is ${written}`, () => {
      within(zone, () => {
        withZone(wall).should.equal(written);
        wallClock(written).should.equal(wall);
      });
    });
  }

  it('is shown to somebody elsewhere by their own clock', () => {
    within('Europe/Berlin', () => {
      wallClock('2030-01-31T09:00:00-06:00').should.equal('2030-01-31T16:00');
    });
  });

  it('is nothing when it cannot be read', () => {
    withZone('').should.equal('');
    wallClock('next Tuesday').should.equal('');
    wallClock('${WHEN}').should.equal('');
  });
});
