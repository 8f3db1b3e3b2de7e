import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import should from 'should';
import { nodeTypes } from './node-types';
import { root } from '../support/installation';
import type { FlowNode } from '../support/node-red';
import { examples, nameOf } from './support';

interface Port {
  readonly wires: readonly { readonly id: string; readonly port?: number }[];
}

/** All ends of all wires, those of a subflow's own inputs and outputs included. */
const endsOf = (node: FlowNode): string[] => [
  ...((node['wires'] as string[][] | undefined) ?? []).flat(),
  ...[...((node['in'] as Port[] | undefined) ?? []), ...((node['out'] as Port[] | undefined) ?? [])].flatMap(
    ({ wires }) => wires.map(({ id }) => id),
  ),
];

const placeOf = (node: FlowNode): unknown => (node.type === 'subflow' ? node.id : node['z']);

describe('the example flows, as files', () => {
  it('are the twelve, numbered, and share no id', () => {
    should(examples.map(({ title }) => Number(title.slice(0, 2)))).deepEqual(
      Array.from({ length: 12 }, (_, index) => index + 1),
    );
    const ids = examples.flatMap(({ nodes }) => nodes.map(({ id }) => id));
    should(new Set(ids).size).equal(ids.length);
  });

  it('use every node of the package', () => {
    const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
      'node-red': { nodes: Record<string, string> };
    };
    const used = new Set(examples.flatMap(({ nodes }) => nodes.map(({ type }) => type)));
    for (const type of Object.keys(manifest['node-red'].nodes)) should(used.has(type)).be.true(type);
  });

  for (const { title, text, nodes } of examples) {
    describe(title, () => {
      const byId = new Map(nodes.map((node) => [node.id, node]));

      it('brings one environment of its own, on the simulator, and uses no other', () => {
        const environments = nodes.filter(({ type }) => type === 'advisor-environment');
        should(environments.length).equal(1);
        const [own] = environments;
        should(own?.['service']).equal('simulator');
        should(own && nameOf(own)).startWith(`Simulator (example ${title.slice(0, 2)}: `);
        const chosen = nodes.filter((node) => 'environment' in node).map((node) => node['environment']);
        should(chosen.length).be.above(0);
        should(new Set(chosen)).deepEqual(new Set([own?.id]));
      });

      it('has one tab, and every wire ends at a node on the same canvas', () => {
        should(nodes.filter(({ type }) => type === 'tab').length).equal(1);
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

      it('has fictional numbers only, and polls every 5 seconds where it waits', () => {
        for (const [number] of text.matchAll(/\+\d{6,}/g)) should(number).match(/^\+1\d{3}55501\d\d$/);
        for (const node of nodes) if (node['mode'] === 'wait') should(node['pollEvery']).equal(5);
      });

      it('sets what the nodes know and nothing else', () => {
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
    });
  }
});
