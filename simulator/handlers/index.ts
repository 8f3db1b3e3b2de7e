import type { EndpointName } from '../../lib/service/endpoints';
import {
  createContact,
  deleteContact,
  getContact,
  searchContacts,
  setContactGroups,
  updateContact,
} from './contacts';
import { searchContent } from './content';
import { createGroup, deleteGroup, searchGroups } from './groups';
import type { Handler } from './handler';
import { getConsent, requestConsent, sendMessage } from './texting';

/** An endpoint of the table without a handler here does not compile. */
export const handlers: { readonly [N in EndpointName]: Handler<N> } = {
  sendMessage,
  requestConsent,
  getConsent,
  createContact,
  updateContact,
  getContact,
  searchContacts,
  deleteContact,
  setContactGroups,
  createGroup,
  searchGroups,
  deleteGroup,
  searchContent,
};
