import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { util } from '@node-red/util';
import should from 'should';
import { epochOf, wallTimeIn } from '../../../lib/runtime/dates';
import { numbers } from '../../support/numbers';
import { nodeTypes } from '../../support/examples/node-types';
import { root } from '../../support/installation';
import { idOfExample } from '../../../nodes/environment/dialog/example-ids';
import type { FlowNode } from '../../support/node-red';
import { examples, examplesIn, examplesWithDashboard, nameOf } from '../../support/examples/setup';

interface Port {
  readonly wires: readonly { readonly id: string; readonly port?: number }[];
}

/** All ends of all wires, including those of a subflow's own inputs and outputs. */
const endsOf = (node: FlowNode): string[] => [
  ...((node['wires'] as string[][] | undefined) ?? []).flat(),
  ...[...((node['in'] as Port[] | undefined) ?? []), ...((node['out'] as Port[] | undefined) ?? [])].flatMap(
    ({ wires }) => wires.map(({ id }) => id),
  ),
];

const placeOf = (node: FlowNode): unknown => (node.type === 'subflow' ? node.id : node['z']);
const recipes = examplesIn(join(root, 'examples', 'recipes'));
const waitsIn = (nodes: readonly FlowNode[]): FlowNode[] => nodes.filter(({ mode }) => mode === 'wait');

describe('the example flows, as files', () => {
  it('show their debug nodes as active: the editor takes one that does not say so for switched off', () => {
    for (const { title, nodes } of [...examples, ...recipes, ...examplesWithDashboard])
      for (const node of nodes.filter(({ type }) => type === 'debug'))
        should(node['active']).equal(true, title);
  });

  it('are numbered from one', () => {
    should(examples.map(({ title }) => Number(title.slice(0, 2)))).deepEqual(
      examples.map((_, index) => index + 1),
    );
  });

  it('and the recipes share no id, so that importing one never attaches to the environment of another', () => {
    const ids = [...examples, ...examplesWithDashboard, ...recipes].flatMap(({ nodes }) =>
      nodes.map(({ id }) => id),
    );
    should(new Set(ids).size).equal(ids.length);
  });

  it('of the recipes include their own environment, on the simulator, and use no other', () => {
    for (const { title, nodes } of recipes) {
      const environments = nodes.filter(({ type }) => type === 'advisor-environment');
      should(environments.map(({ name, service }) => [name, service])).deepEqual([
        [`Simulator (example: ${title})`, 'simulator'],
      ]);
      const chosen = nodes.flatMap(({ environment }) => (environment === undefined ? [] : [environment]));
      should(new Set(chosen)).deepEqual(new Set(environments.map(({ id }) => id)));
    }
  });

  it('have environments that the form knows, so that it keeps them on the simulator', () => {
    const nodes = [...examples, ...recipes, ...examplesWithDashboard].flatMap((each) => each.nodes);
    const ids = nodes.filter(({ type }) => type === 'advisor-environment').map(({ id }) => id);
    should(ids.length).be.above(examples.length);
    should(ids.filter((id) => !idOfExample.test(id))).deepEqual([]);
  });

  it('of the recipes are on a tab each, named like the recipe', () => {
    for (const { title, nodes } of recipes) {
      const tabs = nodes.filter(({ type }) => type === 'tab');
      should(tabs.map(({ label }) => label)).deepEqual([title]);
      const others = nodes.filter(({ type }) => type !== 'tab' && type !== 'advisor-environment');
      should(new Set(others.map(placeOf))).deepEqual(new Set([tabs[0]?.id]));
    }
  });

  it('and the recipes have no inject node that the editor flags: it wants the interval, even an empty one', () => {
    const injects = [...examples, ...examplesWithDashboard, ...recipes].flatMap(({ nodes }) =>
      nodes.filter(({ type }) => type === 'inject'),
    );
    should(injects.filter(({ repeat }) => typeof repeat !== 'string').map(nameOf)).eql([]);
    // A field of one line drops the others.
    const hasLines = (node: FlowNode): boolean =>
      (node['props'] as { v?: string; vt?: string }[]).some(({ v, vt }) => vt === 'str' && v?.includes('\n'));
    should(injects.filter(hasLines).map(nameOf)).eql([]);
  });

  it('have schedules that the inject form shows: it drops all others when it is closed', () => {
    const crontabs = [...examples, ...examplesWithDashboard, ...recipes].flatMap(({ nodes }) =>
      nodes.flatMap((node) => (node['crontab'] ? [node['crontab']] : [])),
    );
    should(crontabs.length).be.above(1);
    for (const crontab of crontabs) should(crontab).match(/^\d\d \d\d \* \* (\*|[0-6](,[0-6])*)$/);
  });

  it('text once each weekday, wherever Node-RED runs and at whatever hour it is started', async () => {
    const { nodes } = recipes.find(({ title }) => title.includes('weekday')) ?? { nodes: [] };
    const { props } = nodes.find(({ type }) => type === 'inject') as unknown as {
      props: { p: string; v: string }[];
    };
    const expression = util.prepareJSONataExpression(
      props.find(({ p }) => p === 'deliveryDate')?.v ?? '',
      {} as never,
    );
    const { TZ } = process.env;
    const { Date: real } = globalThis;
    let now = 0;
    globalThis.Date = class extends real {
      constructor(value: number | string = now) {
        super(value);
      }
      static override now = () => now;
    } as DateConstructor;
    try {
      for (const zone of [
        'UTC',
        'America/New_York',
        'America/Chicago',
        'Pacific/Honolulu',
        'Pacific/Kiritimati',
      ])
        for (const start of ['2026-03-05T00:00Z', '2026-06-01T00:00Z', '2026-10-29T00:00Z']) {
          const byHour = new Map<string, string[]>();
          for (let hours = 0; hours < 7 * 24; hours++) {
            now = real.parse(start) + hours * 3_600_000;
            process.env['TZ'] = zone;
            const date = await new Promise<string>((resolve) => {
              util.evaluateJSONataExpression(expression, {}, (_fault, value) => resolve(String(value)));
            });
            should(epochOf(date, 'America/Chicago')).be.above(now);
            const weekday = (of: string): number => new real(of.slice(0, 10)).getUTCDay();
            should(weekday(date)).be.within(1, 5);
            const [day = '', time = ''] = wallTimeIn(now, zone).split('T');
            if (time.startsWith('01') && weekday(day) % 6 !== 0) should(date).startWith(day);
            const hour = time.slice(0, 2);
            if (weekday(day) % 6 !== 0) byHour.set(hour, [...(byHour.get(hour) ?? []), date]);
          }
          // Where the clocks change between two runs at one hour, nine is before the one and after the other.
          if (start.includes('-06-'))
            for (const dates of byHour.values()) should(new Set(dates)).have.size(5);
        }
    } finally {
      globalThis.Date = real;
      if (TZ === undefined) delete process.env['TZ'];
      else process.env['TZ'] = TZ;
    }
  });

  it('say in a row what a dry run did not send, and what had been sent before', async () => {
    const { nodes } = recipes.find(({ title }) => title === 'Get a list of who failed') ?? { nodes: [] };
    const [rule] = nodes.find(({ name }) => name === 'row')?.['rules'] as { to: string }[];
    const row = (msg: Record<string, unknown>): Promise<unknown> =>
      new Promise((resolve) => {
        const expression = util.prepareJSONataExpression(rule?.to ?? '', {} as never);
        util.evaluateJSONataExpression(expression, msg, (_fault, value) => resolve(value));
      });
    const sent = { outcome: 'sent', phone: numbers.consented };
    should(await row({ ...sent, payload: {} })).containEql({ outcome: 'sent', why: '' });
    for (const payload of [{ alreadySent: true }, { duplicateOf: 0 }])
      should(await row({ ...sent, payload })).containEql({
        outcome: 'sent',
        why: 'sent before, so not again',
      });
    should(await row({ ...sent, payload: { dryRun: true } })).containEql({ outcome: 'dry run: sent' });
    const failed = { outcome: 'failed', error: { message: 'No.', dryRun: true }, payload: [] };
    should(await row(failed)).containEql({ outcome: 'dry run: failed', why: 'No.' });
    const asked = { outcome: 'needsConsent', payload: { dryRun: true } };
    should(await row(asked)).containEql({ outcome: 'dry run: needsConsent', why: 'no consent yet' });
  });

  it('that need more than this package are in a separate folder, and say first what they need', () => {
    should(examplesWithDashboard.length).be.above(0);
    for (const { nodes } of examplesWithDashboard) {
      const notes = nodes.filter(({ type }) => type === 'comment');
      should(String(notes[0]?.['info'])).startWith('This needs **@flowfuse/node-red-dashboard**');
    }
  });

  it('use every node of the package', () => {
    const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
      'node-red': { nodes: Record<string, string> };
    };
    const used = new Set(examples.flatMap(({ nodes }) => nodes.map(({ type }) => type)));
    for (const type of Object.keys(manifest['node-red'].nodes)) should(used.has(type)).be.true(type);
  });

  it('ask nobody for consent who is in another example, so that each works regardless of the others', () => {
    const all = [...examples, ...examplesWithDashboard];
    const numbersOf = ({ text }: (typeof all)[number]): string[] =>
      [...new Set(text.match(/\+1[ \d]{10,}/g))].map((number) => number.replaceAll(' ', ''));
    /** Ann, Ben and Carla have consented from the start, and a landline never can. */
    const settled = ['+12065550101', '+12125550102', '+12135550103', numbers.landline];
    const asking = all.filter(({ nodes }) => nodes.some(({ type }) => type === 'advisor-request-consent'));
    should(asking.length).be.above(3);
    should(asking.filter(({ nodes }) => waitsIn(nodes).length > 0).length).be.above(3);
    for (const one of asking)
      for (const other of all) {
        if (other === one) continue;
        const shared = numbersOf(one).filter((number) => numbersOf(other).includes(number));
        should(shared.filter((number) => !settled.includes(number))).deepEqual(
          [],
          `${one.title}, ${other.title}`,
        );
      }
  });

  for (const { title, text, nodes } of [...examples, ...examplesWithDashboard]) {
    const number = /^\d\d/.exec(title)?.[0];
    describe(title, () => {
      const byId = new Map(nodes.map((node) => [node.id, node]));

      it('includes its own environment, on the simulator, and uses no other', () => {
        const environments = nodes.filter(({ type }) => type === 'advisor-environment');
        should(environments.length).equal(1);
        const [own] = environments;
        should(own?.['service']).equal('simulator');
        should(own && nameOf(own)).startWith(
          number === undefined ? 'Simulator (example with ' : `Simulator (example ${number}: `,
        );
        const chosen = nodes.filter((node) => 'environment' in node).map((node) => node['environment']);
        should(chosen.length).be.above(0);
        should(new Set(chosen)).deepEqual(new Set([own?.id]));
      });

      it('has one tab, named like the example in the Import menu, number first', () => {
        const tabs = nodes.filter(({ type }) => type === 'tab');
        should(tabs.map(({ label }) => label)).deepEqual([title]);
      });

      it('has wires that end at a node on the same canvas', () => {
        for (const node of nodes)
          for (const id of endsOf(node)) {
            const end = byId.get(id);
            should(end && placeOf(end)).equal(placeOf(node), `${node.id} → ${id}`);
          }
      });

      it('says first what to press or open', () => {
        const notes = nodes.filter(({ type }) => type === 'comment');
        should(notes[0] && nameOf(notes[0])).match(/^(Press|Open) /);
        should(String(notes[0]?.['info'])).not.equal('');
        const buttons = nodes.filter(({ type }) => type === 'inject').map(nameOf);
        const pages = nodes.filter(({ type }) => type === 'http in');
        should(buttons.length + pages.length).be.above(0);
        for (const quoted of notes.flatMap((note) => [...nameOf(note).matchAll(/Press "([^"]+)"/g)]))
          should(buttons).containEql(quoted[1]);
      });

      it('has only fictional numbers', () => {
        for (const [number] of text.matchAll(/\+\d{6,}/g)) should(number).match(/^\+1\d{3}55501\d\d$/);
      });

      it('sets only properties that the nodes know', () => {
        for (const node of nodes) {
          const known = nodeTypes.get(node.type);
          if (!known) continue;
          const own = Object.keys(node).filter(
            (key) => !['id', 'type', 'z', 'x', 'y', 'wires'].includes(key),
          );
          for (const key of own) should(known.names).containEql(key);
          should((node['wires'] as unknown[] | undefined)?.length ?? 0).equal(known.outputs);
        }
      });

      const waits = waitsIn(nodes);
      if (waits.length === 0) return;

      it('polls every 5 seconds where it waits, and says beside each wait what to set before going live', () => {
        for (const wait of waits) {
          should(wait['pollEvery']).equal(5);
          const notes = nodes.filter((node) => node.type === 'comment' && node['z'] === wait['z']);
          should(notes.map(nameOf).join('\n')).match(
            /^Before it goes live: .*"wait for consent".*"as the service recommends, for a day"/m,
          );
        }
      });

      it('asks again after a day without an answer, and not forever', () => {
        for (const wait of waits) {
          const [, , notAccepted = []] = wait['wires'] as string[][];
          const again = byId.get(notAccepted[0] ?? '');
          should(again?.['property']).equal('payload.reason');
          should(again?.['rules']).containDeep([{ t: 'eq', v: 'expired' }]);
          const ask = byId.get((again?.['wires'] as string[][] | undefined)?.[0]?.[0] ?? '');
          should(ask?.type).equal('advisor-request-consent');
          should(ask?.['limit']).be.above(0);
          should(ask?.['every']).be.aboveOrEqual(24);
        }
      });
    });
  }
});
