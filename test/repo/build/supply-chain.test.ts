import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import should from 'should';
import { root } from '../../support/installation';

interface Locked {
  readonly license?: string;
  readonly engines?: { readonly node?: string };
  readonly resolved?: string;
  readonly dev?: boolean;
  readonly devOptional?: boolean;
  readonly peer?: boolean;
}

const read = (name: string): unknown => JSON.parse(readFileSync(join(root, name), 'utf8'));

describe("the package's dependencies", () => {
  const { packages } = read('package-lock.json') as { packages: Record<string, Locked> };
  const { engines, publishConfig } = read('package.json') as {
    engines: { node: string };
    publishConfig: object;
  };
  const installed = Object.entries(packages).filter(
    ([name, { dev, devOptional, peer }]) => name !== '' && !dev && !devOptional && !peer,
  );
  const allowed = /^(MIT|ISC|0BSD|BSD-[23]-Clause|Apache-2\.0)$/;

  it('have permissive licences', () => {
    should(installed.length).be.above(5);
    const others = installed.filter(([, { license = 'none' }]) => !allowed.test(license));
    should(others.map(([name, { license }]) => `${name}: ${String(license)}`)).eql([]);
  });

  it('run on the oldest Node.js that the package supports', () => {
    const leastOf = (range: string): number => {
      const [, major = '0', minor = '0', patch = '0'] =
        /^>= ?(\d+)(?:\.(\d+))?(?:\.(\d+))?$/.exec(range) ?? [];
      return Number(major) * 1e6 + Number(minor) * 1e3 + Number(patch);
    };
    const ours = leastOf(engines.node);
    should(ours).be.above(0);
    const newer = installed.flatMap(([name, { engines: needs }]) =>
      needs?.node !== undefined && leastOf(needs.node) > ours ? [`${name} needs ${needs.node}`] : [],
    );
    should(newer).eql([]);
  });

  it('include a binary of the database for every system named in the docs', () => {
    const systems = ['darwin-arm64', 'darwin-x64', 'linux-arm64', 'linux-x64', 'win32-arm64', 'win32-x64'];
    const missing = systems.filter((system) => !(`node_modules/@lmdb/lmdb-${system}` in packages));
    should(missing).eql([]);
  });

  it('are pinned by a lock file that names no host, and published with provenance', () => {
    should(Object.values(packages).filter(({ resolved }) => resolved?.includes('://'))).eql([]);
    should(publishConfig).containEql({ provenance: true });
  });
});
