import should from 'should';
import { createMemoryStore } from '../../../lib/state/memory';
import { changeRecord, key } from '../../../lib/state/store';
import { overStore } from '../../support/state/over-store';

describe('a record that is changed', () => {
  const at = key('counted');
  const oneMore = (known = { count: 0 }): { count: number } => ({ count: known.count + 1 });

  it('is changed from what others make of it between the read and the write', async () => {
    const shared = createMemoryStore();
    let others = 2;
    const store = overStore(shared, {
      write: async (...written) => {
        others -= 1;
        if (others >= 0) await changeRecord(shared, 'work', at, oneMore);
        return shared.write(...written);
      },
    });
    should(await changeRecord(store, 'work', at, oneMore)).eql({ count: 3 });
    should((await shared.get('work', at))?.value).eql({ count: 3 });
  });

  it('is not written when it stays as it is, and is removed by undefined', async () => {
    const store = createMemoryStore();
    await changeRecord(store, 'work', at, oneMore);
    const before = await store.get('work', at);
    await changeRecord<{ count: number }>(store, 'work', at, (known) => known);
    should((await store.get('work', at))?.version).eql(before?.version);
    await changeRecord(store, 'work', at, () => undefined);
    should(await store.get('work', at)).be.undefined();
  });
});
