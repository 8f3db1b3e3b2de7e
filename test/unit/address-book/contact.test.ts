import should from 'should';
import { nextIteration } from '../../support/event-loop';
import { Flow } from '../../support/flow';
import { only } from '../../support/only';
import { errorOf } from '../../support/outcomes';
import { simulatedForEach } from '../../support/simulated';
import { contactNode, folders, payloads, scripted } from '../../support/address-book/setup';
import { gate } from '../../support/gate';

const ann = 1001;

describe('contact node', () => {
  const on = simulatedForEach();

  const get = async (contactId: number): Promise<Record<string, unknown>> => {
    const client = await on.environment.client();
    const answer = await client.call('getContact', { params: { contactId } }, { advisor: 'default' });
    return answer.data;
  };

  describe('create', () => {
    it('creates the contact of msg.payload and returns its id and input, and leaves the rest untouched', async () => {
      const flow = await contactNode(on.environment, { operation: 'create' });
      const given = { firstName: 'Zoe', phone: '+13125550177' };
      const { port, msg } = only(await flow.ask({ payload: given, topic: 'kept', error: 'old' }));
      const { id } = msg.payload as { id: number };
      should(port).equal(0);
      should(msg.contact).deepEqual(given);
      should(msg.contactId).equal(id);
      should(msg).have.property('topic', 'kept');
      should(msg).not.have.properties('error', 'parts');
      should(await get(id)).containEql({ firstName: 'Zoe', phone: '+13125550177' });
      await flow.completed.next();
    });

    it("sends only the given fields, with the contract's types, and names the unknown ones once", async () => {
      const { environment, requests } = await scripted(() => ({ body: { id: 7 } }));
      const flow = await contactNode(environment, { operation: 'create' });
      const payload = [
        { firstName: 'A', nickname: '', city: null, postalCode: 12345, gender: '0', shoeSize: 44 },
        { firstName: 'B', shoeSize: 43, maritalStatus: 2 },
      ];
      await flow.ask({ payload }, 2);
      should(requests().map(({ body }) => body)).deepEqual([
        { firstName: 'A', nickname: '', postalCode: '12345', gender: 0 },
        { firstName: 'B', maritalStatus: 2 },
      ]);
      await flow.ask({ payload: { firstName: 'C', shoeSize: 42 } });
      should(flow.warnings).have.length(1);
      should(flow.warnings[0]?.match(/shoeSize/g)).have.length(1);
      should(flow.warnings[0])
        .match(/shoeSize/)
        .and.not.match(/44|firstName/);
    });

    it('emits one outcome per entry of a list, with parts inside the outer parts', async () => {
      const flow = await contactNode(on.environment, { operation: 'create' });
      const payload = [{ firstName: 'A' }, 'nobody', { firstName: 'C', gender: 'often' }];
      const outer = { id: 'outer', type: 'array', index: 4, count: 9 };
      const arrived = await flow.ask({ payload, parts: outer }, 3);
      should(arrived.filter(({ port }) => port === 0)).have.length(1);
      const failures = arrived.filter(({ port }) => port === 1);
      should(failures.map(({ msg }) => msg.contact)).deepEqual(payload.slice(1));
      should(failures.map((one) => errorOf(one.msg).code)).deepEqual(['invalid_input', 'invalid_input']);
      should(failures.map(({ msg }) => msg.payload)).deepEqual(payload.slice(1));
      for (const { msg } of arrived) {
        const { index } = msg.parts as { index: number };
        should(msg.parts).containEql({ type: 'array', count: 3, parts: outer });
        should(msg.contact).deepEqual(payload[index]);
      }
      await flow.completed.next();
      should(flow.completed.all).have.length(1);
    });

    it('sets parts for a list of one and none for a single contact', async () => {
      const flow = await contactNode(on.environment, { operation: 'create' });
      should(only(await flow.ask({ payload: [{ firstName: 'A' }] })).msg.parts).containEql({
        index: 0,
        count: 1,
      });
      should(only(await flow.ask({ payload: { firstName: 'A' } })).msg).not.have.property('parts');
    });

    it('reads the fields one by one, each from its own source', async () => {
      const { environment, requests } = await scripted(() => ({ body: { id: 7 } }));
      const flow = await contactNode(environment, {
        operation: 'create',
        contactType: 'fields',
        fields: [
          { field: 'firstName', value: 'who.first', valueType: 'msg' },
          { field: 'lastName', value: '$uppercase(who.last)', valueType: 'jsonata' },
          { field: 'city', value: 'Reno', valueType: 'str' },
          { field: 'gender', value: '1', valueType: 'num' },
          { field: 'nickname', value: 'nothing', valueType: 'msg' },
        ],
      });
      const { msg } = only(await flow.ask({ payload: 'kept out', who: { first: 'Zoe', last: 'ray' } }));
      should(requests()[0]?.body).deepEqual({ firstName: 'Zoe', lastName: 'RAY', city: 'Reno', gender: 1 });
      should(msg.contact).containEql({ firstName: 'Zoe', lastName: 'RAY' });
    });

    it('shows no complete number of a list without a header row', async () => {
      const flow = await contactNode(on.environment, { operation: 'create' });
      await flow.ask({ payload: { firstName: 'A', '+12025550125': '+12025550124' } });
      should(flow.warnings[0])
        .match(/0125/)
        .and.not.match(/12025550125/);
    });

    it('rejects an empty list, an empty contact and a non-contact without a request', async () => {
      const flow = await contactNode(on.environment, { operation: 'create' });
      for (const payload of [
        [],
        {},
        { shoeSize: 44 },
        'Zoe',
        1700000000000,
        undefined,
        [[{ firstName: 'A' }]],
      ]) {
        const { port, msg } = only(await flow.ask({ payload }));
        should(port).equal(1);
        should(msg.error).containEql({ code: 'invalid_input', attempts: 0 });
        const isList = Array.isArray(payload) && payload.length > 0;
        should(msg.payload).deepEqual(isList ? payload[0] : payload);
      }
      should(on.received('createContact')).equal(0);
    });

    it('says what is wrong with a contact that sets no field, and still warns', async () => {
      const flow = await contactNode(on.environment, { operation: 'create' });
      const said = async (payload: unknown): Promise<string> =>
        errorOf(only(await flow.ask({ payload })).msg).message;
      should(await said({ firstname: 'A' })).match(/"firstname" is not one of them: write "firstName"/);
      should(await said({ shoe: 1, 'Postal Code': '1' })).match(/"Postal Code" .+ write "postalCode"/);
      should(flow.warnings.join(' ')).match(/firstname.+shoe.+Postal Code/s);
      should(await said({ shoe: 1, '+12025550125': 2 })).match(/its fields are shoe, …0125: use/);
      should(await said({ a: 1, b: 1, c: 1, d: 1, e: 1, f: 1 })).match(/its fields are a, b, c, d, e, …:/);
      should(await said({ firstName: null })).match(
        /^The contact has no field filled in: fill in at least one/,
      );
      should(await said('{bad json')).match(/^msg\.payload contains text, not a contact: .+JSON node/);
      should(await said(' ')).match(/^There is no contact in msg\.payload/);
    });
  });

  describe('the phone number, in an environment with a country', () => {
    const phones = (requests: readonly { method: string; body: unknown }[]): unknown[] =>
      requests.filter(({ body }) => body !== undefined).map(({ body }) => (body as { phone: unknown }).phone);
    const inUS = { settings: { country: 'US' } };

    it('is read as a texting node reads it, and stays unchanged in msg.contact', async () => {
      const { environment, requests } = await scripted(() => ({ body: { id: 7 } }), inUS);
      const flow = await contactNode(environment, { operation: 'create' });
      for (const phone of ['(206) 555-0101', 2065550101, '+442079460123']) {
        const { port, msg } = only(await flow.ask({ payload: { phone } }));
        should(port).equal(0);
        should(msg.contact).deepEqual({ phone });
      }
      should(phones(requests())).deepEqual(['+12065550101', '+12065550101', '+442079460123']);
    });

    for (const merge of [true, false]) {
      it(`is read in an update, ${merge ? 'merged, as the number that the contact has' : 'alone'}`, async () => {
        const current = { contactId: ann, firstName: 'Ann', phone: '206 555 0199' };
        const { environment, requests } = await scripted(
          ({ method }) => ({ body: method === 'GET' ? current : { id: ann } }),
          inUS,
        );
        const flow = await contactNode(environment, { operation: 'update', merge });
        await flow.ask({ contactId: ann, payload: { phone: '206 555 0101' } });
        await flow.ask({ contactId: ann, payload: { city: 'Reno' } });
        should(phones(requests())).deepEqual(['+12065550101', merge ? '+12065550199' : undefined]);
      });
    }

    for (const operation of ['create', 'update'])
      for (const phone of ['', ' '])
        it(`counts as missing if it is "${phone}", in a ${operation}`, async () => {
          const current = { contactId: ann, phone: '+12065550199' };
          const { environment, requests } = await scripted(
            ({ method }) => ({ body: method === 'GET' ? current : { id: ann } }),
            inUS,
          );
          const flow = await contactNode(environment, { operation });
          should(only(await flow.ask({ contactId: ann, payload: { city: 'Reno', phone } })).port).equal(0);
          const kept = operation === 'update' ? { phone: '+12065550199' } : {};
          should(requests().at(-1)?.body).deepEqual({ city: 'Reno', ...kept });
          const alone = only(await flow.ask({ contactId: ann, payload: { phone } }));
          should(errorOf(alone.msg)).containEql({ code: 'invalid_input', attempts: 0 });
        });

    it('is rejected without a request when the country has no such number', async () => {
      const { environment, requests } = await scripted(() => ({ body: { id: 7 } }), inUS);
      for (const operation of ['create', 'update']) {
        const flow = await contactNode(environment, { operation });
        const failed = only(await flow.ask({ contactId: ann, payload: { phone: '20255501234567' } }));
        should(errorOf(failed.msg).code).equal('invalid_input');
        should(errorOf(failed.msg).message).match(
          /does not fit the country of the environment \(United States\)/,
        );
        await Flow.unload();
      }
      should(requests()).be.empty();
    });

    it('is rejected without a request when a spreadsheet has probably rounded it', async () => {
      const { environment, requests } = await scripted(() => ({ body: { id: 7 } }), inUS);
      const flow = await contactNode(environment, { operation: 'create' });
      const { msg } = only(await flow.ask({ payload: { firstName: 'Hiro', phone: 2_185_550_000 } }));
      should(errorOf(msg).message).match(/^This phone number ends in 0000/);
      should(requests()).be.empty();
    });

    it('may contain spaces if it starts with +', async () => {
      const { environment, requests } = await scripted(() => ({ body: { id: 7 } }));
      const flow = await contactNode(environment, { operation: 'create' });
      await flow.ask({ payload: { phone: '+1 (206) 555-0101' } });
      should(phones(requests())).deepEqual(['+12065550101']);
    });

    it('needs a country without +, which the failure names as send text does', async () => {
      const { environment, requests } = await scripted(() => ({ body: { id: 7 } }));
      const flow = await contactNode(environment, { operation: 'create' });
      const { msg } = only(await flow.ask({ payload: { phone: '2065550199' } }));
      should(errorOf(msg).code).equal('invalid_input');
      should(errorOf(msg).message).match(/Country/);
      should(requests()).be.empty();
    });
  });

  describe('update', () => {
    it('keeps the fields it does not name', async () => {
      const before = await get(ann);
      const flow = await contactNode(on.environment, { operation: 'update' });
      const { port, msg } = only(await flow.ask({ contactId: ann, payload: { city: 'Reno' } }));
      should(port).equal(0);
      should(msg.payload).deepEqual({ id: ann });
      should(msg.contact).deepEqual({ city: 'Reno' });
      const { dateTimeModified: _, ...kept } = before;
      should(await get(ann)).containEql({ ...kept, city: 'Reno' });
    });

    it('sends the complete contact, with the changes and without nulls', async () => {
      const current = {
        contactId: 5,
        firstName: 'Ann',
        nickname: 'A',
        city: 'X',
        state: null,
        gender: 0,
        source: 2,
      };
      const { environment, requests } = await scripted(({ method }) => ({
        body: method === 'GET' ? current : { id: 5 },
      }));
      const flow = await contactNode(environment, { operation: 'update' });
      await flow.ask({ contactId: '5', payload: { city: '', nickname: null, lastName: 'Ito' } });
      should(requests().map(({ method, path }) => `${method} ${path}`)).deepEqual([
        'GET /v1/core/contact/contacts/5',
        'PUT /v1/core/contact/contacts/5',
      ]);
      should(requests()[1]?.body).deepEqual({ firstName: 'Ann', lastName: 'Ito', gender: 0, city: '' });
    });

    it('omits unchanged empty strings, which a service may reject', async () => {
      const current = { contactId: 5, firstName: 'Ann', nickname: '', city: 'X', phone: '', state: ' ' };
      const { environment, requests } = await scripted(({ method, body }) => {
        if (method === 'GET') return { body: current };
        return Object.values(body as object).some((value) => value === '')
          ? { status: 400, body: { code: 'invalid_request' } }
          : { body: { id: 5 } };
      });
      const flow = await contactNode(environment, { operation: 'update' });
      const { port } = only(await flow.ask({ contactId: 5, payload: { city: 'Reno', gender: 1 } }));
      should(port).equal(0);
      should(requests()[1]?.body).deepEqual({ firstName: 'Ann', city: 'Reno', gender: 1 });
    });

    it('writes an unreadable number back unchanged: the service decides', async () => {
      const current = { contactId: 5, phone: '(202) 555-0123' };
      const { environment, requests } = await scripted(({ method }) => ({
        body: method === 'GET' ? current : { id: 5 },
      }));
      const flow = await contactNode(environment, { operation: 'update' });
      await flow.ask({ contactId: 5, payload: { city: 'Reno' } });
      should(requests()[1]?.body).deepEqual({ phone: '(202) 555-0123', city: 'Reno' });
    });

    it('writes back no letter that was lost on the way here, unless the field is given too', async () => {
      const current = { contactId: 5, firstName: 'Jos\ufffd', city: 'Reno' };
      const { environment, requests } = await scripted(({ method }) => ({
        body: method === 'GET' ? current : { id: 5 },
      }));
      const flow = await contactNode(environment, { operation: 'update' });
      const failed = only(await flow.ask({ contactId: 5, payload: { lastName: 'New' } }));
      should([failed.port, errorOf(failed.msg).code]).deepEqual([1, 'invalid_response']);
      should(errorOf(failed.msg).message).match(/"firstName"/);
      should(requests()).have.length(1);
      await flow.ask({ contactId: 5, payload: { firstName: 'José', lastName: 'New' } });
      should(requests().at(-1)?.body).deepEqual({ firstName: 'José', lastName: 'New', city: 'Reno' });
    });

    it('clears a field when nothing else changes', async () => {
      const current = { contactId: 5, firstName: 'Ann', nickname: 'A' };
      const { environment, requests } = await scripted(({ method }) => ({
        body: method === 'GET' ? current : { id: 5 },
      }));
      const flow = await contactNode(environment, { operation: 'update' });
      should(only(await flow.ask({ contactId: 5, payload: { nickname: null } })).port).equal(0);
      should(requests()[1]?.body).deepEqual({ firstName: 'Ann' });
    });

    it('sends only the changes when merge is off', async () => {
      const { environment, requests } = await scripted(() => ({ body: { id: 5 } }));
      const flow = await contactNode(environment, { operation: 'update', merge: false });
      await flow.ask({ contactId: 5, payload: { city: 'Reno' } });
      should(requests().map(({ method, body }) => [method, body])).deepEqual([['PUT', { city: 'Reno' }]]);
    });

    it('merges one at a time per contact, across nodes', async () => {
      const flow = await Flow.load({
        folders,
        environment: on.environment,
        nodes: ['a', 'b'].map((id) => ({ id, type: 'advisor-contact', operation: 'update' })),
      });
      const fields = ['nickname', 'city', 'address1', 'address2', 'state', 'postalCode'];
      fields.forEach((field, index) => {
        flow.send({ contactId: ann, payload: { [field]: `${field} new` } }, index % 2 ? 'a' : 'b');
      });
      await flow.arrivals.next(fields.length);
      should(await get(ann)).containEql(Object.fromEntries(fields.map((field) => [field, `${field} new`])));
    });

    it('takes the id of each contact of a list from the contact itself', async () => {
      const flow = await contactNode(on.environment, { operation: 'update' });
      const payload = [
        { contactId: 1002, city: 'Two' },
        { contactId: 1003, city: 'Three' },
        { city: 'Nowhere' },
      ];
      const arrived = await flow.ask({ contactId: ann, payload }, 3);
      should((await get(1002)).city).equal('Two');
      should((await get(1003)).city).equal('Three');
      const failed = arrived.filter(({ port }) => port === 1);
      should(failed.map(({ msg }) => msg.contact)).deepEqual([{ city: 'Nowhere' }]);
      should(flow.warnings).be.empty();
    });
  });

  describe('get and delete', () => {
    it('returns the complete contact, including custom fields', async () => {
      const flow = await contactNode(on.environment, { operation: 'get' });
      const { port, msg } = only(await flow.ask({ contactId: ann }));
      should(port).equal(0);
      should(msg.contactId).equal(ann);
      should(msg.payload).deepEqual(await get(ann));
      should(msg.payload).have.properties('customFields', 'groupIds', 'phone', 'birthDate');
    });

    it('emits one outcome per id of a list', async () => {
      const flow = await contactNode(on.environment, { operation: 'get' });
      const arrived = await flow.ask({ contactId: [ann, 'x', '1002'] }, 3);
      should(arrived.filter(({ port }) => port === 0).map(({ msg }) => msg.contactId)).containDeep([
        ann,
        1002,
      ]);
      const failed = arrived.filter(({ port }) => port === 1);
      should(failed.map(({ msg }) => msg.contactId)).deepEqual(['x']);
    });

    it('deletes and returns the id', async () => {
      const flow = await contactNode(on.environment, { operation: 'delete' });
      const { msg } = only(await flow.ask({ contactId: ann }));
      should(msg.payload).deepEqual({ id: ann });
      const again = only(await flow.ask({ contactId: ann }));
      should(again.port).equal(1);
      should(errorOf(again.msg)).containEql({ code: 'not_found', status: 404 });
    });

    it('rejects an invalid id, and says where it looked', async () => {
      const flow = await contactNode(on.environment, { operation: 'get' });
      for (const contactId of [undefined, '', 'Ann Ito', 1.5, -1, {}, true]) {
        const failed = only(await flow.ask({ contactId }));
        should(failed.port).equal(1);
        should(errorOf(failed.msg).code).equal('invalid_input');
        should(errorOf(failed.msg).message).match(/msg\.contactId/);
      }
      should(on.received('getContact')).equal(0);
    });
  });

  it('cancels what has not started on msg.reset, and emits each', async () => {
    const { opened: held, open: answer } = gate();
    const { environment, requests } = await scripted(async () => {
      await held;
      return { body: { id: 7 } };
    });
    const flow = await contactNode(environment, { operation: 'create' });
    const payload = Array.from({ length: 40 }, (_, index) => ({ firstName: String(index) }));
    const coming = flow.arrivals.next(40);
    flow.send({ payload });
    while (requests().length < 16) await nextIteration();
    flow.send({ reset: true });
    await nextIteration();
    answer();
    const arrived = await coming;
    should(arrived.filter(({ port }) => port === 0)).have.length(16);
    should(new Set(arrived.filter(({ port }) => port === 1).map((one) => errorOf(one.msg).code))).deepEqual(
      new Set(['cancelled']),
    );
    should(requests()).have.length(16);
    const failures = arrived.filter(({ port }) => port === 1);
    should(payloads(failures)).deepEqual(failures.map(({ msg }) => msg.contact));
  });

  it('finishes what has started when it closes, and does the rest after a deploy', async () => {
    const { opened: held, open: answer } = gate();
    const { environment, requests } = await scripted(async () => {
      await held;
      return { body: { id: 7 } };
    });
    const flow = await contactNode(environment, { operation: 'create' });
    const names = Array.from({ length: 40 }, (_, n) => `Nr. ${String(n)}`);
    flow.send({ payload: names.map((firstName) => ({ firstName })) });
    while (requests().length < 16) await nextIteration();
    const closed = Flow.unload();
    await nextIteration();
    answer();
    await closed;
    should(requests()).have.length(16);
    should(flow.settled).be.empty();

    const after = await contactNode(environment, { operation: 'create' });
    const arrived = await after.arrivals.next(40);
    should(new Set(arrived.map(({ port }) => port))).deepEqual(new Set([0]));
    should(new Set(arrived.map(({ msg }) => (msg.contact as { firstName: string }).firstName))).deepEqual(
      new Set(names),
    );
    should(requests()).have.length(40);
  });

  it('shows in its status what it did, and that it uses the simulator', async () => {
    const flow = await contactNode(on.environment, { operation: 'get' });
    await flow.ask({ contactId: ann });
    await flow.completed.next();
    should(flow.statuses.at(-1)).containEql({ fill: 'green', shape: 'dot' });
    should(flow.statuses.at(-1)?.text).match(/^sim done \d{1,2}:\d\d( [AP]M)?$/);
  });
});
