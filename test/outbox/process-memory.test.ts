import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const root = join(__dirname, '..', '..');
/** Loaded or filled at the first use, or used within one call: a deploy finds nothing in them. */
const ofNoDeploy = [
  'lib/auth/cipher.ts: nextNonce',
  'lib/guards/text-hours.ts: zonesByPrefix',
  'lib/outbox/recorder.ts: gathering',
  'lib/runtime/metrics.ts: api',
  'lib/service/exchange.ts: assembly',
  'lib/texting/recipients.ts: parsePhoneNumber',
];

const sources = ['lib', 'nodes']
  .flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((file) => `${folder}/${file}`),
  )
  .map((file) => file.replaceAll('\\', '/'))
  .filter((file) => file.endsWith('.ts') && !file.startsWith('lib/editor/'))
  .filter((file) => !/^nodes\/[^/]+\/(dialog\/|editor\.ts)/.test(file));

describe('what outlives a deploy in memory', () => {
  it('is listed in one place: no module keeps anything else that changes', () => {
    const found = sources.flatMap((file) =>
      [
        ...readFileSync(join(root, file), 'utf8').matchAll(
          // Those with contents are tables. What hangs on an object ends with it, but for those that live as long as the process.
          /^(?:export )?(?:let (\w+)|const (\w+) = new (?:(?:Map|Set)(?:<.*>)?|WeakMap<(?:Red|RuntimeEvents|MeterProvider)\b.*>)\(\);)/gm,
        ),
      ].map(([, changing, collection]) => `${file}: ${changing ?? collection ?? ''}`),
    );
    assert.deepEqual(
      found.filter((each) => !ofNoDeploy.includes(each)),
      [],
      'use processMemory (lib/process-memory.ts), and say there what it is for',
    );
  });
});
