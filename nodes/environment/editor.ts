import { addDurations } from '../../lib/editor/durations';
import type { Form, Say, Values } from '../../lib/editor/red';
import { clearStatuses, recheckConsentNodes, usersOf } from '../../lib/editor/flow';
import { isVariable } from '../../lib/runtime/settings';
import { savedOr } from '../../lib/editor/values';
import { addAdvisors } from './dialog/advisors';
import { askBeforeGoingLive, noteService, obeyDisabledDone, warnOfGoingLive } from './dialog/going-live';
import { addHours } from './dialog/hours';
import {
  addKeptNote,
  addLostStoreNote,
  addNameNote,
  addPendingNote,
  addRedirect,
  openPagesApart,
} from './dialog/notes';
import { addSearchWords, keepWordsWhole } from './dialog/palette';
import { askBeforeDelete, warnOfRemoval } from './dialog/removal';
import { addScopes } from './dialog/scopes';

export const label = ({ service }: Values, say: Say): string =>
  isVariable(service) ? String(service) : say(`option.service.${String(service)}`);

openPagesApart();
addSearchWords();
keepWordsWhole();
warnOfRemoval();
obeyDisabledDone();
warnOfGoingLive();
recheckConsentNodes();

export const opened = (form: Form): void => {
  askBeforeGoingLive(form);
  askBeforeDelete(form);
  addPendingNote(form);
  addKeptNote(form);
  addLostStoreNote(form);
  addNameNote(form);
  addRedirect(form);
  addScopes(form);
  addHours(form);
  addDurations(form, ['timeout', 'resumeWithin']);
  addAdvisors(form);
};

export const saving = (form: Form): void => {
  const { service } = form.values();
  noteService(form.node, service);
  const isMoved = savedOr(form.node['service'], 'simulator') !== service;
  if (isMoved) clearStatuses(usersOf(form.node));
};
