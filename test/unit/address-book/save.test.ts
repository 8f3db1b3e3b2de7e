import should from 'should';
import { activityOf } from '../../../lib/runtime/activity';
import type { Message } from '../../../lib/runtime/red';
import type { Problem } from '../../../lib/service/errors';
import { MovableClock } from '../../../simulator/movable-clock';
import { closeAll } from '../../support/closing';
import { Flow } from '../../support/flow';
import { gate } from '../../support/gate';
import { nextIteration } from '../../support/event-loop';
import { only } from '../../support/only';
import { errorOf } from '../../support/outcomes';
import type { Reply } from '../../support/server';
import { contactNode, folders, scripted, type Request } from '../../support/address-book/setup';

type Person = Record<string, unknown> & { contactId: number };

/** An address book that follows the contract: two contacts per page, whatever is requested. */
class Book {
  readonly people: Person[];
  private next = 50;
  /** Contacts that can be read and are not found by a search yet. */
  readonly unlisted = new Set<number>();

  constructor(people: readonly Person[] = []) {
    this.people = [...people];
  }

  readonly answer = ({ method, path, query, body }: Request): Reply => {
    const id = Number(/contacts\/(\d+)$/.exec(path)?.[1]);
    const person = this.people.find(({ contactId }) => contactId === id);
    if (method === 'POST') {
      const contactId = this.next++;
      this.people.push({ contactId, ...(body as object) });
      return { body: { id: contactId } };
    }
    if (path.endsWith('/contacts')) return { body: this.page(Number(query['page'] ?? 1)) };
    if (!person) return { status: 404, body: { code: 'not_found', status: 404 } };
    if (method === 'PUT') Object.assign(person, body);
    return { body: method === 'PUT' ? { id } : person };
  };

  private page(page: number): object {
    const listed = this.people.filter(({ contactId }) => !this.unlisted.has(contactId));
    const data = listed.slice((page - 1) * 2, page * 2).map(({ contactId, ...fields }) => ({
      contactId,
      fullName: [fields['firstName'], fields['lastName']].filter(Boolean).join(' '),
      email: fields['emailAddress'] ?? '',
    }));
    return { data, pageInfo: { page, pageSize: 2, totalRecord: listed.length } };
  }
}

const ann = { contactId: 1, firstName: 'Ann', lastName: 'Ito', emailAddress: 'ann@example.com' };
const ben = { contactId: 2, firstName: 'Ben', lastName: 'Okafor', emailAddress: 'ben@example.com' };
const eva = { contactId: 3, firstName: 'Éva', lastName: 'Nagy', emailAddress: 'eva@example.com' };
const otherAnn = { contactId: 4, firstName: 'ann', lastName: 'ito', emailAddress: 'ito@example.com' };

describe('contact node, save', () => {
  afterEach(async () => {
    await Flow.unload();
    await closeAll();
  });

  it('writes an e-mail address without the spaces around it', async () => {
    const book = new Book([{ ...ann }]);
    const { environment } = await scripted(book.answer);
    const flow = await contactNode(environment, { operation: 'save', matchBy: 'email' });
    await flow.ask({ payload: { emailAddress: 'Ann@example.com ', firstName: 'Anne' } });
    should(book.people).deepEqual([{ ...ann, firstName: 'Anne', emailAddress: 'Ann@example.com' }]);
  });

  it('knows the first field of a spreadsheet row despite the byte-order mark before it', async () => {
    const book = new Book();
    const { environment } = await scripted(book.answer);
    const flow = await contactNode(environment, { operation: 'save', matchBy: 'email' });
    const row = { '\ufefffirstName': 'Ann', emailAddress: 'ann@example.com' };
    const { port } = only(await flow.ask({ payload: [row] }));
    should(port).equal(0);
    should(book.people.map(({ firstName }) => firstName)).deepEqual(['Ann']);
  });

  let book: Book;
  const start = async (people: readonly Person[], config: object = {}, choices: object = {}) => {
    book = new Book(people);
    const { environment, requests } = await scripted((request) => book.answer(request), choices);
    const flow = await contactNode(environment, { operation: 'save', ...config });
    const writes = (): unknown[] =>
      requests()
        .filter(({ method }) => method !== 'GET')
        .map(({ method, path, body }) => [`${method} ${path.replace('/v1/core/contact', '')}`, body]);
    const searches = (): number =>
      requests().filter(({ method, path }) => method === 'GET' && path.endsWith('/contacts')).length;
    return { flow, writes, searches, requests, environment };
  };
  const done = async (flow: Flow, msg: Message): Promise<Message> => {
    const { port, msg: left } = only(await flow.ask(msg));
    should(port).equal(0, JSON.stringify(left.error));
    return left;
  };

  it('updates the contact of contactId, without a search', async () => {
    for (const msg of [
      { contactId: 2, payload: { city: 'Reno' } },
      { payload: { contactId: 2, city: 'Reno' } },
    ]) {
      const { flow, writes, searches } = await start([ann, ben]);
      const left = await done(flow, msg);
      should(left).containEql({ contactId: 2, payload: { id: 2 }, contact: msg.payload });
      const { contactId: _, ...fields } = ben;
      should(writes()).eql([['PUT /contacts/2', { ...fields, city: 'Reno' }]]);
      should(searches()).equal(0);
      await Flow.unload();
    }
  });

  it('updates the only contact with this e-mail address, on whatever page it is, and keeps its other fields', async () => {
    const { flow, writes } = await start([ann, ben, { ...eva, city: 'Pécs', phone: '' }]);
    const payload = { emailAddress: ' EVA@example.com', firstName: 'Eva' };
    const left = await done(flow, { payload });
    should(left).containEql({ contactId: 3, payload: { id: 3 }, contact: payload });
    should(writes()).eql([
      [
        'PUT /contacts/3',
        { firstName: 'Eva', lastName: 'Nagy', emailAddress: 'EVA@example.com', city: 'Pécs' },
      ],
    ]);
  });

  it('sends only the given fields when merge is off', async () => {
    const { flow, writes } = await start([ann], { merge: false });
    await done(flow, { payload: { emailAddress: 'ann@example.com', city: 'Reno' } });
    should(writes()).eql([['PUT /contacts/1', { emailAddress: 'ann@example.com', city: 'Reno' }]]);
  });

  it('creates the contact if there is none', async () => {
    for (const people of [[], [ann, ben, eva]]) {
      const { flow, writes } = await start(people);
      const payload = { emailAddress: 'zoe@example.com', firstName: 'Zoe', phone: '' };
      should(await done(flow, { payload })).containEql({
        contactId: 50,
        payload: { id: 50 },
        contact: payload,
      });
      should(writes()).eql([['POST /contacts', { emailAddress: 'zoe@example.com', firstName: 'Zoe' }]]);
      await Flow.unload();
    }
  });

  it('matches by full name, ignoring case and spaces, but not accents', async () => {
    const { flow, writes } = await start([ann, ben, eva], { matchBy: 'fullName' });
    await done(flow, { payload: { firstName: ' BEN ', lastName: 'okafor', city: 'Reno' } });
    await done(flow, { payload: { firstName: 'Eva', lastName: 'Nagy' } });
    should(writes()).match([['PUT /contacts/2'], ['POST /contacts', { firstName: 'Eva', lastName: 'Nagy' }]]);
  });

  it('finds the name if a service writes the last name first', async () => {
    const { environment, requests } = await scripted(({ method, path }) => {
      if (method === 'PUT') return { body: { id: 1 } };
      const names = { firstName: 'Ann', lastName: 'Ito' };
      if (path.endsWith('/1')) return { body: { contactId: 1, ...names } };
      return { body: { data: [{ contactId: 1, fullName: 'Ito, Ann', ...names }] } };
    });
    const flow = await contactNode(environment, { operation: 'save', matchBy: 'fullName' });
    await done(flow, { payload: { firstName: 'Ann', lastName: 'Ito' } });
    should(requests().at(-1)?.method).equal('PUT');
  });

  it('writes nothing if several match, and lists them', async () => {
    const { flow, writes } = await start([ann, ben, eva, otherAnn], { matchBy: 'fullName' });
    const { port, msg } = only(await flow.ask({ payload: { firstName: 'Ann', lastName: 'Ito' } }));
    should(port).equal(1);
    should(errorOf(msg)).containEql({ code: 'invalid_input' });
    should(errorOf(msg).message).match(/ids 1, 4.+contactId/);
    should((msg.error as { details: unknown }).details).match([
      { contactId: 1, fullName: 'Ann Ito', email: 'ann@example.com' },
      { contactId: 4, fullName: 'ann ito', email: 'ito@example.com' },
    ]);
    should(writes()).be.empty();
  });

  it('rejects a contact without its match field, and an invalid id, without a request', async () => {
    for (const [matchBy, msg, says] of [
      ['email', { payload: { firstName: 'Ann', emailAddress: ' ' } }, /emailAddress.+contactId/],
      ['fullName', { payload: { emailAddress: 'ann@example.com' } }, /firstName.+contactId/],
      ['email', { payload: {} }, /none of the known fields|no field filled in/],
      ['email', { payload: { emailAddress: 'a@example.com' }, contactId: 'Ann Ito' }, /msg\.contactId/],
      ['email', { payload: { emailAddress: 'a@example.com', contactId: -1 } }, /not an id/],
    ] as const) {
      const { flow, requests } = await start([ann], { matchBy });
      const { port, msg: left } = only(await flow.ask({ ...msg }));
      should(port).equal(1);
      should(errorOf(left)).containEql({ code: 'invalid_input', attempts: 0 });
      should(errorOf(left).message).match(says);
      should(requests()).be.empty();
      await Flow.unload();
    }
  });

  it('writes nothing if the service does not return the match field', async () => {
    const { environment, requests } = await scripted(() => ({
      body: { data: [{ contactId: 1, fullName: 'A' }] },
    }));
    const flow = await contactNode(environment, { operation: 'save' });
    const { msg } = only(await flow.ask({ payload: { emailAddress: 'a@example.com' } }));
    should(errorOf(msg).code).equal('invalid_response');
    should(requests().every(({ method }) => method === 'GET')).be.true();
  });

  it('creates one contact for two messages about the same person, even through two nodes', async () => {
    book = new Book([ann]);
    const { opened, open } = gate();
    const { environment, requests } = await scripted(async (request) => {
      if (request.method === 'POST') await opened;
      return book.answer(request);
    });
    const nodes = ['a', 'b'].map((id) => ({ id, type: 'advisor-contact', operation: 'save' }));
    const flow = await Flow.load({ folders, environment, nodes });
    const coming = flow.arrivals.next(2);
    flow.send({ payload: { emailAddress: 'zoe@example.com', firstName: 'Zoe' } }, 'a');
    flow.send({ payload: { emailAddress: 'Zoe@example.com', city: 'Reno' } }, 'b');
    while (!requests().some(({ method }) => method === 'POST')) await nextIteration();
    open();
    should((await coming).map(({ msg }) => msg.contactId)).eql([50, 50]);
    should(book.people).have.length(2);
    should(book.people[1]).containEql({ firstName: 'Zoe', city: 'Reno' });
  });

  it('updates a contact that it has just created if the search does not show it yet, for ten minutes', async () => {
    const clock = new MovableClock(() => 1_750_000_000_000);
    const { flow } = await start([ann], {}, { clock });
    const payload = { emailAddress: 'zoe@example.com' };
    await done(flow, { payload });
    book.unlisted.add(50);
    should(await done(flow, { payload })).containEql({ contactId: 50 });
    // Meanwhile the contact got another address, and was then deleted.
    const zoe = book.people[1];
    if (zoe) zoe['emailAddress'] = 'other@example.com';
    should(await done(flow, { payload })).containEql({ contactId: 51 });
    book.people.length = 1;
    await clock.move(2 * 60_000);
    should(await done(flow, { payload })).containEql({ contactId: 52 });
    book.unlisted.add(52);
    await clock.move(11 * 60_000);
    should(await done(flow, { payload })).containEql({ contactId: 53 });
  });

  it('creates nobody a second time while the service does not find the new contact yet, unless it was deleted', async () => {
    const clock = new MovableClock(() => 1_750_000_000_000);
    for (const reply of [
      { status: 404, body: { code: 'not_found', retryable: false } },
      { status: 404, body: '<html>' },
    ]) {
      const { flow, environment } = await start([], {}, { clock });
      const payload = { emailAddress: 'zoe@example.com' };
      await done(flow, { payload });
      book.unlisted.add(50);
      const { answer } = book;
      Object.assign(book, {
        answer: (request: Request) =>
          request.method === 'GET' && request.path.endsWith('/50') ? reply : answer(request),
      });
      const failed = only(await flow.ask({ payload }));
      should([failed.port, errorOf(failed.msg).code]).deepEqual([1, 'not_found']);
      should(book.people).have.length(1);
      await Flow.unload();
      const deleting = await contactNode(environment, { operation: 'delete' });
      await done(deleting, { contactId: 50 });
      await Flow.unload();
      const saving = await contactNode(environment, { operation: 'save' });
      should(await done(saving, { payload })).containEql({ contactId: 51 });
      await Flow.unload();
    }
  });

  it('reads the address book once for a list, in which the same person is created once', async () => {
    const { flow, writes, searches } = await start([ann, ben, eva]);
    const zoe = { emailAddress: 'zoe@example.com' };
    const payload = [
      zoe,
      { emailAddress: 'ann@example.com', city: 'Reno' },
      { ...zoe, city: 'Bend' },
      { contactId: 2, city: 'X' },
      {},
    ];
    const arrived = await flow.ask({ payload, contactId: 3 }, 5);
    should(arrived.filter(({ port }) => port === 1).map(({ msg }) => msg.contact)).eql([{}]);
    should(searches()).equal(2);
    should(writes()).have.length(4);
    should(book.people).have.length(4);
    should(book.people.map(({ city }) => city)).eql(['Reno', 'X', undefined, 'Bend']);
  });

  it('goes on with a list while it reads the address book for it and one contact is cancelled', async () => {
    const [reached, held] = [gate(), gate()];
    const book = new Book();
    const { environment } = await scripted(async (request) => {
      reached.open();
      await held.opened;
      return book.answer(request);
    });
    const flow = await contactNode(environment, { operation: 'save', matchBy: 'email' });
    const coming = flow.arrivals.next(2);
    flow.send({
      payload: ['Ann', 'Ben'].map((firstName) => ({ firstName, emailAddress: `${firstName}@example.com` })),
    });
    await reached.opened;
    const activity = activityOf(environment);
    const [first] = (await activity.queue({ page: 1, pageSize: 1 })).data;
    should(await activity.cancel(first?.id ?? '')).be.true();
    held.open();
    should(
      (await coming).map(({ msg }) => [msg.outcome, (msg.error as Problem | undefined)?.code]),
    ).deepEqual([
      ['failed', 'cancelled'],
      ['done', undefined],
    ]);
    should(book.people.map(({ firstName }) => firstName)).deepEqual(['Ben']);
  });

  it('updates a contact that moves to an earlier page because another is deleted while the pages are read', async () => {
    const wanted = { emailAddress: 'eva@example.com', city: 'Pécs' };
    for (const payload of [wanted, [wanted]]) {
      book = new Book([ann, ben, eva, otherAnn]);
      const { environment } = await scripted((request) => {
        if (request.query['page'] === '2' && book.people[0] === ann) book.people.shift();
        return book.answer(request);
      });
      const flow = await contactNode(environment, { operation: 'save' });
      should(await done(flow, { payload })).containEql({ contactId: 3 });
      should(book.people.map(({ contactId }) => contactId)).deepEqual([2, 3, 4]);
      await Flow.unload();
    }
  });

  it('creates one after a few readings if contacts are deleted in each', async () => {
    book = new Book(
      Array.from({ length: 20 }, (_, contactId) => ({ contactId, emailAddress: 'x@example.com' })),
    );
    const { environment, requests } = await scripted((request) => {
      if (request.query['page'] === '2') book.people.shift();
      return book.answer(request);
    });
    const flow = await contactNode(environment, { operation: 'save' });
    await done(flow, { payload: { emailAddress: 'zoe@example.com' } });
    should(requests().filter(({ query }) => query['page'] === '1')).have.length(3);
    should(book.people.at(-1)).containEql({ emailAddress: 'zoe@example.com' });
  });

  it('reads the address book again for a person of a list whose creation had an unknown outcome', async () => {
    book = new Book([ann]);
    let isFirst = true;
    const { environment } = await scripted((request) => {
      const reply = book.answer(request);
      if (request.method !== 'POST' || !isFirst) return reply;
      isFirst = false;
      return { status: 502, body: 'gateway' };
    });
    const flow = await contactNode(environment, { operation: 'save' });
    const zoe = { emailAddress: 'zoe@example.com' };
    const arrived = await flow.ask({ payload: [zoe, zoe] }, 2);
    should(arrived.map(({ msg }) => (msg.error as { code?: string } | undefined)?.code)).eql([
      'outcome_unknown',
      undefined,
    ]);
    should(book.people).have.length(2);
  });
});
