import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import should from 'should';
import { isLong, versions } from '../support/extent';
import { root } from '../support/installation';
import { numbers, randomFrom, Sandbox, type Told, toldOf } from '../support/sandbox';

const sends = ['sent', 'failed', 'needs consent'];
const waits = ['accepted', 'wait failed', 'not accepted'];
/** Of each kind and version, and among how many texts and waits. */
const kills = isLong ? 5 : 1;
const texts = isLong ? 2000 : 800;
const often = kills === 1 ? 'once' : `${kills} times`;
const accepting = 200;
const waiting = kills * accepting;

/** Everyone has an outcome; repeated ones are marked. */
const toldWell = (phones: readonly string[], byPhone: ReadonlyMap<string, readonly Told[]>): void => {
  const silent = phones.filter((phone) => !byPhone.has(phone));
  should(silent).deepEqual([]);
  const unmarked = phones.filter(
    (phone) => (byPhone.get(phone) ?? []).filter(({ isRepeated }) => !isRepeated).length > 1,
  );
  should(unmarked).deepEqual([]);
  should(byPhone.size).equal(phones.length);
};

/** What was counted, over all processes. */
const countedIn = (file: string, name: string): Map<string, number> => {
  const counts = new Map<string, number>();
  for (const line of readFileSync(file, 'utf8').trim().split('\n')) {
    const added = JSON.parse(line) as { name: string; value: number; labels?: Record<string, string> };
    if (added.name !== `advisor_texting.${name}`) continue;
    const labels = Object.values(added.labels ?? {}).join(' ');
    counts.set(labels, (counts.get(labels) ?? 0) + added.value);
  }
  return counts;
};
/** How many outcomes were emitted again. */
const againIn = (byPhone: ReadonlyMap<string, readonly Told[]>): number =>
  [...byPhone.values()].filter((told) => told.some(({ isRepeated }) => isRepeated)).length;
const sum = (counts: ReadonlyMap<string, number>): number =>
  [...counts.values()].reduce((all, each) => all + each, 0);

for (const version of versions) {
  describe(`kill -9 on Node-RED ${version.toString()}`, function () {
    this.timeout(180_000);
    let on: Sandbox;
    const folder = mkdtempSync(join(tmpdir(), 'advisor-texting-metered-'));
    const metered = join(folder, 'counts');

    before(async () => {
      on = await Sandbox.start({
        version,
        simulator: { contacts: 1100 },
        env: {
          NODE_OPTIONS: `--require ${JSON.stringify(join(root, 'test', 'support', 'counting-meter.cjs'))}`,
          NODE_PATH: join(root, 'node_modules'),
          METERED: metered,
        },
      });
    });
    after(async () => {
      await on.close();
      rmSync(folder, { recursive: true, force: true });
    });

    it(`${often} in a list of ${texts}: each outcome is emitted, no text is sent twice, none is missing, and metrics count none twice`, async () => {
      const { red, simulator } = on;
      const random = randomFrom(4000 + version);
      const phones = numbers(texts, 2000);
      simulator.change({ consentRequired: false });
      await red.send('send', { phone: phones, text: 'Hello', campaign: 'autumn' });
      for (let kill = 0; kill < kills; kill++) {
        const before = on.entries('sendMessage').length;
        await on.received('sendMessage', before + 1 + random(300));
        await red.kill9();
        await red.run();
      }
      await red.until(
        () => toldOf(red, sends).byPhone.size === phones.length || undefined,
        'The last outcome',
        60_000,
      );
      const { byPhone, messages } = toldOf(red, sends);
      toldWell(phones, byPhone);

      const received = new Map<string, number>();
      for (const { phone, processed } of on.entries('sendMessage'))
        if (processed) received.set(String(phone), (received.get(String(phone)) ?? 0) + 1);
      should([...received.values()].filter((times) => times > 1)).deepEqual([]);
      let unknown = 0;
      for (const phone of phones) {
        const told = byPhone.get(phone) ?? [];
        if (told.some(({ port }) => port === 'sent')) should(received.get(phone)).equal(1);
        else {
          should(new Set(told.map(({ code }) => code))).deepEqual(new Set(['outcome_unknown']));
          unknown += 1;
        }
      }
      // At most 16 requests are in flight, and as many more are started ahead.
      should(unknown).be.belowOrEqual(kills * 32);
      // Metrics count each text once at most, and everything that a kill has not cut off.
      const requests = countedIn(metered, 'requests').get('sendMessage 200') ?? 0;
      should(requests)
        .be.belowOrEqual(received.size)
        .and.aboveOrEqual(received.size - unknown);
      const outcomes = countedIn(metered, 'outcomes');
      const again = againIn(byPhone);
      should([...outcomes.keys()].filter((labels) => !labels.startsWith('advisor-send-text '))).be.empty();
      should(sum(outcomes))
        .be.belowOrEqual(phones.length)
        .and.aboveOrEqual(phones.length - again);
      should(outcomes.get('advisor-send-text sent')).be.belowOrEqual(phones.length - unknown);
      should(outcomes.get('advisor-send-text failed outcome_unknown') ?? 0).be.belowOrEqual(unknown);
      for (const msg of messages) {
        should(msg['parts']).containEql({ count: texts });
        should(msg['campaign']).equal('autumn');
      }
      console.log(
        `      ${received.size.toString()} texts received, ${messages.length.toString()} outcomes told, ` +
          `${messages.filter((msg) => msg['repeated'] === true).length.toString()} repeated, ${unknown.toString()} unknown`,
      );
    });

    it(`${often} among ${waiting} waits: each ends once it may, and none is lost`, async () => {
      const { red, simulator } = on;
      const random = randomFrom(5000 + version);
      const phones = numbers(waiting);
      await red.send('wait', { phone: phones, campaign: 'consent' });
      await on.received('getConsent', 1);
      const left = [...phones];
      for (let kill = 0; kill < kills; kill++) {
        for (let count = 0; count < accepting; count++)
          simulator.accept(left.splice(random(left.length), 1)[0] ?? '');
        const before = toldOf(red, waits).messages.length;
        const enough = before + 1 + random(150);
        await red.until(
          () => toldOf(red, waits).messages.length >= enough || undefined,
          'Some of the waits',
          30_000,
        );
        await red.kill9();
        await red.run();
      }
      await red.until(
        () => toldOf(red, waits).byPhone.size === phones.length || undefined,
        'The last wait',
        60_000,
      );
      const { byPhone, messages } = toldOf(red, waits);
      toldWell(phones, byPhone);
      for (const told of byPhone.values()) for (const { port } of told) should(port).equal('accepted');
      for (const msg of messages) should(msg['campaign']).equal('consent');
      const again = againIn(byPhone);
      should(countedIn(metered, 'outcomes').get('advisor-check-consent accepted'))
        .be.belowOrEqual(phones.length)
        .and.aboveOrEqual(phones.length - again);
      console.log(
        `      ${messages.length.toString()} outcomes told, ` +
          `${messages.filter((msg) => msg['repeated'] === true).length.toString()} repeated`,
      );
    });
  });
}
