import type { Request } from 'express';
import should from 'should';
import { ServiceError } from '../../../lib/service/errors';
import type { RunningEnvironment } from '../../../nodes/environment/environment';
import { lookUp } from '../../../nodes/environment/lookup';
import { closeAll } from '../../support/closing';
import { scripted } from '../../support/address-book/setup';

describe('the lookup of the editor', () => {
  afterEach(closeAll);

  const look = async (query: Record<string, string>, pageInfo: object | null): Promise<unknown> => {
    const data = Array.from({ length: 200 }, (_, at) => ({ contactId: at, fullName: `Somebody ${at}` }));
    const { environment } = await scripted(() => ({ body: { data, pageInfo } }));
    const request = { params: { what: 'contacts' }, query } as unknown as Request;
    return lookUp(environment as unknown as RunningEnvironment, request).catch((fault: unknown) => fault);
  };

  it('searches content of the type chosen in the dialog', async () => {
    const { environment, requests } = await scripted(() => ({ body: { data: [], pageInfo: null } }));
    const query = { filter: 'tax', contentType: 'Emails' };
    const request = { params: { what: 'content' }, query } as unknown as Request;
    await lookUp(environment as unknown as RunningEnvironment, request);
    should(requests()[0]?.query).containEql({ searchText: 'tax', contentType: 'Emails' });
  });

  for (const [what, shown] of [
    ['contacts', { contactId: 1, fullName: 'Ann Lee', email: 'ann@example.com' }],
    ['groups', { groupId: 2, name: 'Clients', contactCount: 3 }],
    ['content', { title: 'Saving', url: 'https://example.com' }],
  ] as const) {
    it(`shows what the picker needs of ${what}, and no number that the service adds`, async () => {
      const record = { ...shown, phone: '+12065550101', notes: 'Call +12065550102' };
      const { environment } = await scripted(() => ({ body: { data: [record], pageInfo: { page: 1 } } }));
      for (const filter of ['', ...Object.values(shown).slice(1, 2)]) {
        const request = { params: { what }, query: { filter } } as unknown as Request;
        should(await lookUp(environment as unknown as RunningEnvironment, request)).containEql({
          data: [shown],
        });
      }
    });
  }

  for (const [what, query, pageInfo] of [
    ['when it claims to be the first', { page: '2' }, { page: 1 }],
    ['among those it filters', { filter: 'nobody' }, { page: 1 }],
    ['among those it filters, when none has a number', { filter: 'nobody' }, null],
  ] as const) {
    it(`rejects a page that was not requested, ${what}`, async () => {
      const fault = await look(query, pageInfo);
      should(fault).be.instanceof(ServiceError);
      should((fault as ServiceError).code).equal('invalid_response');
      should((fault as ServiceError).message).match(
        /page 2. It probably has another name for the page number/,
      );
    });
  }
});
