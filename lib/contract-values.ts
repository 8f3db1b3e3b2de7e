/** Values of the contract (*Limits*, searches) that forms need too: apart from the schemas, which load zod. */

/** The pattern of every phone field (E.164): a plus sign, a digit 1-9, then 7 to 14 more digits. */
export const e164 = /^\+[1-9]\d{7,14}$/;
export const largestPage = 200;
export const longestSearch = 150;
/** The scopes that allow an operation (contract, *Authentication*, 3). */
export const operationScopes = [
  'text.messaging.write',
  'text.messaging.read',
  'core.contacts.read',
  'core.contacts.write',
  'core.content.read',
] as const;
export const sortFields = [
  'fullName',
  'email',
  'emailStatus',
  'groupCount',
  'source',
  'dateTimeCreated',
] as const;
export const contentTypes = [
  'All',
  'WebContent',
  'Emails',
  'SocialPosts',
  'Print',
  'DownloadContent',
] as const;
