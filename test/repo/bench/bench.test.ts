import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import should from 'should';
import {
  figureOf,
  interleaved,
  isReached,
  median,
  quantile,
  ratioOf,
  type Row,
} from '../../../bench/figures';
import { editorCode, packageSize, packedMeasurement } from '../../../bench/parts/size';
import { type Service, startService } from '../../../bench/service';
import { scalingOf } from '../../../bench/scaling';
import { pageOf, withTable, type Results } from '../../../bench/table';
import { createClient } from '../../../lib/service/client';
import type { Client } from '../../../lib/service/client';
import { root, tarball } from '../../support/installation';

describe('the figures of the bench', () => {
  it('are medians with the lowest and highest round', () => {
    median([3, 1, 2]).should.equal(2);
    quantile([1, 2, 3, 4], 0.5).should.equal(2.5);
    figureOf([5, 1, 3]).should.eql({ median: 3, low: 1, high: 5 });
  });

  it('compare each round with its neighbour', () => {
    ratioOf([10, 40], [5, 10]).should.eql({ median: 3, low: 2, high: 4 });
    (() => ratioOf([1], [1, 2])).should.throw(/do not pair up/);
  });

  it('are refused when a round produced none', () => {
    (() => figureOf([1, Number.NaN])).should.throw(/gave no figure/);
    (() => median([])).should.throw(/gave no figure/);
  });

  it('come from rounds that alternate which side goes first', async () => {
    const order: string[] = [];
    const side = (name: string) => async (): Promise<number> => order.push(name);
    await interleaved(2, { a: side('a'), b: side('b') });
    order.should.eql(['a', 'b', 'b', 'a']);
  });

  it('reach a goal, miss it, or have none', () => {
    const row: Row = { measurement: '', unit: '', ours: figureOf([2]), ratio: figureOf([3]) };
    should(isReached(row)).be.undefined();
    should(isReached({ ...row, goal: { of: 'ratio', atLeast: 3 } })).be.true();
    should(isReached({ ...row, goal: { of: 'ours', atMost: 1 } })).be.false();
    should(isReached({ ...row, goal: { of: 'ours', atMost: 2 } })).be.true();
    should(isReached({ ...row, goal: { of: 'ours', below: 2 } })).be.false();
    should(isReached({ ...row, goal: { of: 'ours', below: 2.1 } })).be.true();
    const mixed = { ...row, ours: figureOf([0, 0, 1]) };
    should(isReached({ ...mixed, goal: { of: 'ours', atMost: 0 } })).be.true();
    should(isReached({ ...mixed, goal: { of: 'ours', atMost: 0, everyRound: true } })).be.false();
  });
});

describe('docs/performance.md', () => {
  it('has the table of bench/results.json', () => {
    const results = join(root, 'bench', 'results.json');
    existsSync(results).should.be.true('run npm run bench');
    const document = readFileSync(join(root, 'docs', 'performance.md'), 'utf8');
    const table = pageOf(JSON.parse(readFileSync(results, 'utf8')) as Results);
    document.should.equal(withTable(document, table));
  });
});

describe('docs/scaling.md', () => {
  const row = (measurement: string, value: number): Row => ({
    measurement,
    unit: '',
    ours: figureOf([value]),
    ratio: figureOf([1.1]),
  });
  const measured = (rows: readonly Row[]): Results =>
    ({ parts: [{ name: 'instances', rows }] }) as unknown as Results;

  it('follows from bench/results.json', () => {
    const results = JSON.parse(readFileSync(join(root, 'bench', 'results.json'), 'utf8')) as Results;
    const document = readFileSync(join(root, 'docs', 'scaling.md'), 'utf8');
    document.should.equal(withTable(document, scalingOf(results), 'figures'));
  });

  it('computes cores, instances and disk from CPU, polls and bytes, and nothing from missing figures', () => {
    const where = 'Node-RED 5, PostgreSQL:';
    const rows = [
      row(`${where} CPU per text of a list`, 400),
      row(`${where} CPU per poll with 20,000 waits`, 200),
      row(`${where} polls per second of one instance that has all 20,000 waits`, 2000),
      row('PostgreSQL: 1,000,000 waits, bytes in the database each', 1000),
      row(`${where} 1,000,000 waits, time from ready nodes to the first poll`, 0.5),
      row(`${where} 1,000,000 waits that are polled, memory of its own (RssAnon)`, 200),
    ];
    const said = scalingOf(measured(rows));
    // 50,000,000 × 298 / 86,400 = 172,454 polls a second.
    for (const part of ['**34 cores**, 69 at half load', '**87 instances**', '**50 GB**', '1,000,000 waits'])
      said.should.containEql(part);
    scalingOf(measured(rows.slice(1))).should.match(/^- Not measured yet/);
  });
});

describe('the editor code of all nodes', function () {
  this.timeout(180_000);

  it('is under 200 kB and fetches nothing from outside', () => {
    tarball();
    const { bytes, fetched } = editorCode();
    // The editor loads it once; ten nodes, their forms and a sidebar have to fit.
    bytes.should.be.below(200_000);
    fetched.should.equal(0);
  });
});

describe('the tarball', function () {
  this.timeout(180_000);

  it('has grown by less than a tenth since its size was measured', () => {
    tarball();
    const results = JSON.parse(readFileSync(join(root, 'bench', 'results.json'), 'utf8')) as Results;
    const rows = results.parts.flatMap((part) => part.rows);
    const measured = rows.find((row) => row.measurement === packedMeasurement)?.ours.median;
    should(measured).be.a.Number();
    // If the growth is intended, `npm run bench -- size` measures it again.
    should(packageSize().packed / 1000).be.below(1.1 * (measured ?? 0));
  });
});

describe('the lean server of the bench', function () {
  this.timeout(30_000);
  let service: Service;
  let client: Client;
  let token: string;
  const advisor = { advisor: 'default' };

  before(async () => {
    service = await startService();
    ({ token } = await service.counts());
    client = createClient({ baseUrl: `${service.url}/v1`, apiKey: 'bench-key', token: () => token });
  });

  after(async () => {
    await client.close();
    service.close();
  });

  it('answers as the contract says, and counts its answers', async () => {
    await service.reset();
    await service.setContacts(250);
    const body = { phone: '+12025550123', text: 'Hello – with an accent: é' };
    const sent = await client.call('sendMessage', { body }, advisor);
    should(sent.data.successes?.[0]?.messageId).be.a.Number();
    const consent = await client.call('getConsent', { query: { phone: '+12025550123' } }, advisor);
    consent.data.state.should.equal('pending');
    const page = await client.call('searchContacts', { query: { page: 2, pageSize: 200 } }, advisor);
    page.data.data
      .map(({ contactId }) => contactId)
      .should.eql(Array.from({ length: 50 }, (_, i) => 201 + i));
    (await service.counts()).should.containEql({ texts: 1, polls: 1, pages: 1 });
  });

  it('rejects an expired token', async () => {
    const before = token;
    ({ token } = await service.expire());
    token.should.not.equal(before);
    const after = token;
    token = before;
    const refused = client.call('getConsent', { query: { phone: '+12025550123' } }, advisor);
    await refused.should.be.rejectedWith({ problem: { code: 'unauthorized' } });
    token = after;
    await client.call('getConsent', { query: { phone: '+12025550123' } }, advisor);
  });
});
