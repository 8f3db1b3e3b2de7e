import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import should from 'should';
import { runChild } from '../state/child';

describe('waits and kills', () => {
  it('killed at random points: every wait is told, a repeated one says so', async function () {
    this.timeout(120_000);
    const directory = mkdtempSync(join(tmpdir(), 'advisor-waits-'));
    for (let kills = 0, finished = false; !finished; kills++) {
      const child = runChild('../consent/keeps-waiting.ts', directory);
      if (kills < 8) {
        await child.printed(Math.floor(Math.random() * 60));
        await child.kill();
      } else await child.ended();
      finished = child.lines.includes('done');
    }
    const lines = (file: string): string[] => readFileSync(join(directory, file), 'utf8').trim().split('\n');
    const told = new Set<string>();
    for (const line of lines('told')) {
      const [n = '', again] = line.split(' ');
      if (told.has(n)) should(again).equal('repeated');
      told.add(n);
    }
    for (const n of lines('begun')) should(told.has(n)).be.true();
    rmSync(directory, { recursive: true, force: true });
  });
});
