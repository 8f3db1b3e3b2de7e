import type { OperationName } from '../contract/declaration';
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

/** An endpoint of the contract without a handler here does not compile. */
export const handlers: { readonly [N in OperationName]: Handler<N> } = {
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
