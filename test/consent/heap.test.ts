import fc from 'fast-check';
import should from 'should';
import { Heap } from '../../lib/consent/heap';

describe('the heap of what is due', () => {
  it('gives the soonest first, whatever was put in, moved and taken out', () => {
    const change = fc.record({ item: fc.nat({ max: 1500 }), next: fc.option(fc.nat({ max: 50 })) });
    fc.assert(
      fc.property(fc.array(change, { maxLength: 400, size: 'max' }), (changes) => {
        const heap = new Heap();
        const due = new Map<number, number>();
        for (const { item, next } of changes) {
          if (next === null) {
            heap.remove(item);
            due.delete(item);
          } else {
            heap.put(item, next);
            due.set(item, next);
          }
          const { first } = heap;
          should(first === undefined ? Infinity : heap.nextOf(first)).equal(Math.min(...due.values()));
        }
        should(heap.all().sort()).deepEqual([...due.keys()].sort());
        for (const [item, next] of due) should(heap.nextOf(item)).equal(next);
        const order: number[] = [];
        for (let { first } = heap; first !== undefined; { first } = heap) {
          order.push(heap.nextOf(first));
          heap.remove(first);
          should(heap.has(first)).be.false();
        }
        should(order).deepEqual([...due.values()].sort((one, other) => one - other));
      }),
      { numRuns: 50 },
    );
  });
});
