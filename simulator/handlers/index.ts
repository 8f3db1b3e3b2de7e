import type { OperationName } from '../contract/declaration';
import * as contacts from './contacts';
import * as content from './content';
import * as groups from './groups';
import type { EndpointHandler } from './handler';
import * as texting from './texting';

/** Every handler, by the name of its endpoint: a missing one does not compile. */
export const handlers: { readonly [N in OperationName]: EndpointHandler<N> } = {
  ...texting,
  ...contacts,
  ...groups,
  ...content,
};
