import should from 'should';
import { momentIn, writtenOf } from '../../../lib/editor/moments';

describe('a moment chosen by wall-clock time', () => {
  const cases: [zone: string, wall: string, written: string][] = [
    ['UTC', '2030-01-31T09:00', '2030-01-31T09:00:00+00:00'],
    ['America/Chicago', '2030-01-31T09:00', '2030-01-31T09:00:00-06:00'],
    ['America/Chicago', '2030-07-31T09:00', '2030-07-31T09:00:00-05:00'],
    ['Asia/Kolkata', '2030-01-31T09:05', '2030-01-31T09:05:00+05:30'],
    ['America/St_Johns', '2030-01-31T23:59', '2030-01-31T23:59:00-03:30'],
    ['+05:30', '2030-01-31T09:05', '2030-01-31T09:05:00+05:30'],
    ['', '2030-01-31T09:05', '2030-01-31T09:05'],
  ];

  for (const [zone, wall, written] of cases) {
    it(`keeps its zone: ${wall} in ${zone || 'no zone'} is ${written}`, () => {
      writtenOf({ wall, zone }).should.equal(written);
      should(momentIn(written, ['Asia/Tokyo', zone])).deepEqual({ wall, zone });
    });
  }

  it('skipped by daylight saving is the later one, as the node reads it', () => {
    writtenOf({ wall: '2030-03-10T02:30', zone: 'America/Chicago' }).should.equal(
      '2030-03-10T03:30:00-05:00',
    );
  });

  it('written in an unknown zone keeps its own', () => {
    should(momentIn('2030-01-31T09:00:00-06:00', ['Europe/Berlin'])).deepEqual({
      wall: '2030-01-31T09:00',
      zone: '-06:00',
    });
    should(momentIn('2030-01-31T09:00Z', ['Europe/Berlin'])).deepEqual({
      wall: '2030-01-31T09:00',
      zone: 'UTC',
    });
    should(momentIn('2030-01-31 09:00+0530', [])).deepEqual({ wall: '2030-01-31T09:00', zone: '+05:30' });
    should(momentIn('2030-01-31', [])).deepEqual({ wall: '2030-01-31T00:00', zone: '' });
  });

  it('is nothing when it cannot be read', () => {
    writtenOf({ wall: '', zone: 'UTC' }).should.equal('');
    for (const written of ['next Tuesday', '${WHEN}', '2030-13-31T09:00', '2030-02-30T09:00', ''])
      should(momentIn(written, ['UTC'])).be.undefined();
  });
});
