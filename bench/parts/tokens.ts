import { figureOf, nameOf, type Row } from '../figures';
import { burst, outputs } from '../flows';
import type { Part } from '../part';

/** The service rejects the token while a thousand callers hold it. */
export const tokens: Part = {
  name: 'tokens',
  title: '1,000 callers when the token ends',
  async run({ service, versions, rounds, start }) {
    const rows: Row[] = [];
    for (const version of versions) {
      const node = await start(version);
      const details = { output: outputs.burst, end: 'burst', count: burst, inFlight: burst };
      await node.order('texts', details);
      const refreshes: number[] = [];
      const lost: number[] = [];
      const rejected: number[] = [];
      for (let round = 0; round < rounds; round++) {
        await service.reset();
        await service.expire();
        // Each message arrives as a sent text, or the round fails.
        await node.order('texts', details);
        const counts = await service.counts();
        if (counts.rejected === 0) throw new Error('Nobody met the end of the token.');
        refreshes.push(counts.refreshes);
        rejected.push(counts.rejected);
        lost.push(Math.abs(burst - counts.texts));
      }
      const where = nameOf(version);
      const named = burst.toLocaleString('en-US');
      rows.push(
        {
          measurement: `${where}: refreshes for ${named} callers whose token has expired`,
          unit: '',
          ours: figureOf(refreshes),
          goal: { of: 'ours', atLeast: 1, atMost: 1, everyRound: true },
        },
        {
          measurement: `${where}: texts lost or sent twice meanwhile`,
          unit: '',
          ours: figureOf(lost),
          goal: { of: 'ours', atMost: 0, everyRound: true },
        },
        {
          measurement: `${where}: of them sent with the old token and refused`,
          unit: '',
          ours: figureOf(rejected),
        },
      );
    }
    return rows;
  },
};
