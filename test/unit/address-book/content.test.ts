import should from 'should';
import { alsoClose } from '../../support/closing';
import { only } from '../../support/only';
import { errorOf } from '../../support/outcomes';
import { simulatedForEach, startSimulated } from '../../support/simulated';
import { contentNode, scripted } from '../../support/address-book/setup';

interface ContentPage {
  readonly data: { readonly title: string; readonly url: string }[];
  readonly pageInfo: Record<string, unknown>;
}

describe('content search node', () => {
  const on = simulatedForEach();

  it('finds one page of content for the text in msg.payload', async () => {
    const flow = await contentNode(on.environment, {});
    const all = only(await flow.ask({ payload: '' })).msg.payload as ContentPage;
    should(all.data.length).be.above(1);
    const { title = '' } = all.data[0] ?? {};
    const { port, msg } = only(await flow.ask({ payload: title, topic: 'kept' }));
    const found = msg.payload as ContentPage;
    should(port).equal(0);
    should(msg.topic).equal('kept');
    should(found.data.map((item) => item.title)).containEql(title);
    should(found.data.length).be.below(all.data.length);
    should(found.pageInfo).containEql({ page: 1, pageSize: 50 });
  });

  it('sends type, text and paging, and no text when there is none', async () => {
    const { environment, requests } = await scripted(() => ({ body: { data: [] } }));
    const flow = await contentNode(environment, { contentType: 'Emails', page: 3, pageSize: 20 });
    await flow.ask({ payload: 'tax & more' });
    await flow.ask({ payload: null });
    should(requests().map(({ query }) => query)).deepEqual([
      { contentType: 'Emails', searchText: 'tax & more', page: '3', pageSize: '20' },
      { contentType: 'Emails', page: '3', pageSize: '20' },
    ]);
  });

  it('accepts 150 characters, and rejects 151 and anything but text without a request', async () => {
    const flow = await contentNode(on.environment, {});
    should(only(await flow.ask({ payload: 'x'.repeat(150) })).port).equal(0);
    for (const payload of ['x'.repeat(151), 1700000000000, {}, ['tax']]) {
      const failed = only(await flow.ask({ payload }));
      should(failed.port).equal(1);
      should(errorOf(failed.msg).code).equal('invalid_input');
      should(failed.msg.payload).deepEqual(payload);
    }
    should(on.received('searchContent')).equal(1);
  });

  it('emits each item, even two with the same address', async () => {
    const data = [
      { title: 'One', url: 'https://a.example/1' },
      { title: 'Same place', url: 'https://a.example/1' },
    ];
    const { environment } = await scripted(({ query }) => ({
      body: {
        data: data.slice(Number(query.page) - 1, Number(query.page)),
        pageInfo: { totalRecord: 2, pageSize: 1 },
      },
    }));
    const flow = await contentNode(environment, { emit: 'item', all: true, pageSize: 1 });
    const arrived = await flow.ask({ payload: '' }, 2);
    should(arrived.map(({ msg }) => msg.payload)).deepEqual(data);
    await flow.completed.next();
  });

  it('names the scope that is missing', async () => {
    const { environment } = alsoClose(await startSimulated({}, { scopes: ['openid', 'core.contacts.read'] }));
    const flow = await contentNode(environment, {});
    const failed = only(await flow.ask({ payload: '' }));
    should(errorOf(failed.msg).code).equal('forbidden');
    should(errorOf(failed.msg).message).match(/core\.content\.read/);
  });

  it('rejects half a surrogate pair without a request, and searches for a whole one', async () => {
    const { environment, requests } = await scripted(() => ({ body: { data: [] } }));
    const flow = await contentNode(environment, {});
    const failed = only(await flow.ask({ payload: 'tax \ud83d' }));
    should(failed.port).equal(1);
    should(errorOf(failed.msg).code).equal('invalid_input');
    should(errorOf(failed.msg).message).match(/^The value in msg\.payload contains half a character/);
    should(only(await flow.ask({ payload: 'tax 😀' })).port).equal(0);
    should(requests().map(({ query }) => query.searchText)).deepEqual(['tax 😀']);
  });
});
