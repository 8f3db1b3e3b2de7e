/** A contact summary as in the contract, around its id. */
const [before = '', after = ''] = JSON.stringify({
  contactId: '@',
  identifier: '5f0c3f5e-0000-4000-8000-00000000beac',
  fullName: 'Jordan Example',
  firstName: 'Jordan',
  lastName: 'Example',
  email: 'jordan@example.com',
  emailStatus: 'Active',
  emailAddressDisposition: 0,
  status: 'Active',
  source: 1,
  sourceText: 'Manual',
  groupCount: 2,
  groupNames: ['Clients', 'Newsletter'],
  remoteContactId: 'r-1',
  remoteContactUrl: 'https://crm.example.com/contacts/1',
  isCrmLinkedContact: true,
  dateTimeCreated: '2024-01-01T00:00:00Z',
}).split('"@"');

/** A page of an address book of `total` contacts, as an answer's text. */
export const contactsPage = (total: number, page: number, pageSize: number): string => {
  const items: string[] = [];
  const first = (page - 1) * pageSize + 1;
  for (let id = first; id < first + pageSize && id <= total; id++) items.push(before + String(id) + after);
  const pageInfo = { page, pageSize, totalRecord: total, sortDirection: 'asc', sortBy: 'fullName' };
  return `{"data":[${items.join(',')}],"pageInfo":${JSON.stringify(pageInfo)}}`;
};
