import assert from 'node:assert/strict';
import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openEmbedded } from '../../../lib/state/embedded';
import { endOf, key, type Store } from '../../../lib/state/store';
import { isLong, seed } from '../../support/extent';
import { sealerOf } from '../../support/state/sealer';
import { imageAt, traceOf, type Event } from '../../support/state/power-cut';
import { childCommand } from '../../support/state/processes';

/** `npm run proof -- crash-images` takes thousands. */
const images = Number(process.env['CRASH_IMAGES'] ?? (isLong ? 200 : 50));

/** Pseudo-random numbers, reproducible by their seed (mulberry32). */
const randomFrom = (start: number): (() => number) => {
  let state = start;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
};

const valuesOf = async (store: Store, table: 'wait' | 'work', prefix: Buffer): Promise<number[]> => {
  const page = await store.page<{ n: number; text: string }>(table, {
    from: prefix,
    to: endOf(prefix),
    limit: 1e6,
  });
  for (const { value } of page) assert.equal(value.text.length, (value.n * 37) % 3000);
  return page.map(({ value }) => value.n);
};

describe('a power cut', function () {
  this.timeout(60_000 + images * 2000);
  const base = realpathSync(
    mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'advisor-power-')),
  );
  let events: readonly Event[];

  before(() => {
    const directory = join(base, 'traced');
    events = traceOf(
      childCommand(directory, 'x', 'burst'),
      join(directory, 'store.mdb'),
      join(base, 'trace'),
    );
  });
  after(() => rmSync(base, { recursive: true, force: true }));

  it('is simulated from everything that the store wrote', () => {
    const { image, said } = imageAt(events, events.length, () => false);
    assert.ok(said.includes('149'), 'the traced process did its work');
    assert.ok(events.filter(({ kind }) => kind === 'synced').length > 30, 'each commit was synced');
    assert.ok((image?.length ?? 0) > 100_000);
  });

  it(`leaves everything that was saved, and nothing half-written (${images} images)`, async () => {
    const random = randomFrom(seed);
    for (let n = 0; n < images; n++) {
      // The first start, which creates the file, is short.
      const cut = 1 + Math.floor(random() * (n % 5 === 0 ? 60 : events.length));
      const share = random();
      const { image, said } = imageAt(events, cut, () => random() < share);
      const directory = join(base, `image-${n}`);
      mkdirSync(directory);
      if (image) writeFileSync(join(directory, 'store.mdb'), image);
      // After a cut, the socket of the last owner is still there, and nobody listens.
      for (const [socket] of image?.toString('latin1').matchAll(/owner-\d+-[0-9a-f]+\.sock/g) ?? [])
        writeFileSync(join(directory, socket), '');
      const where = `image ${n} of seed ${seed}, cut after ${cut} of ${events.length}`;
      const warnings: string[] = [];
      const store = await openEmbedded({
        directory,
        sealer: sealerOf('test'),
        warn: (text) => warnings.push(text),
      });
      assert.equal(store.engine.trouble, undefined, where);
      const acknowledged = said.split('\n').filter((line) => /^\d+$/.test(line)).length;
      const kept = await valuesOf(store, 'work', key('a', 'x'));
      assert.ok(kept.length >= acknowledged, `${where}: ${acknowledged} were saved, ${kept.length} are left`);
      assert.deepEqual(
        kept,
        Array.from({ length: kept.length }, (_, at) => at),
        where,
      );
      assert.deepEqual(await valuesOf(store, 'wait', key('b', 'x')), kept.slice(-50), where);
      // It also accepts new records.
      assert.equal(await store.write([{ table: 'work', put: key('new'), value: 1 }]), true, where);
      await store.close();
      assert.deepEqual(warnings, [], where);
      rmSync(directory, { recursive: true });
    }
  });
});
