import { type MessageValues, type ServiceError, errorMaker } from '../service/errors';
import { wordFor } from './language';

/** Sentences about an invalid value, by what it should be: a status has a word for each. */
const sentencesAbout = {
  phone: {
    phone_missing:
      'There is no phone number in __where__: put one there, or choose another place in the node.',
    phone_entry:
      'This entry of the list in __where__ has no phone number: give a number, or an object that has it under the name __column__.',
    phone_field_empty:
      'The field "__column__" of this entry of the list in __where__ is empty: enter a phone number there.',
    phone_field_missing:
      'This entry of the list in __where__ has no field "__column__". Its fields are __fields__: enter the one with the phone number under "Column" in the node.',
    phone_field_likely:
      'This entry of the list in __where__ has no field "__column__". Its fields are __fields__: enter "__likely__" under "Column" in the node.',
    phone_json:
      'What is in __where__ is a text that looks like a list or an object: make an array of it, for example with a JSON node.',
    phone_kind:
      'A phone number must be a text such as +12025550123; a list may hold numbers, or objects with a phone.',
    phone_none: 'What was given is not a phone number: give one such as +12025550123.',
    phone_digits:
      'The phone number has __count__ digits: with its country code it must have 8 to 15, and not begin with 0.',
    phone_format:
      'The phone number has other signs than digits: write a plus sign, then the country code and the rest in digits.',
    phone_country:
      "The phone number has no country code: begin it with + and the code, such as +1 202 555 0123, or choose a Country in the environment's dialog.",
    phone_impossible:
      'The phone number is not a possible one in __country__: write it with + and its country code.',
    phone_short:
      'The phone number is too short (__count__ digits): write it whole, with + and its country code, such as +1 202 555 0123.',
    phones_empty: 'The list in __where__ is empty: give it at least one number.',
    phones_kind: 'There is no phone number or list of them in __where__: put one there.',
  },
  text: {
    text_literal_empty: 'The text is empty: write one in the node.',
    text_in_payload:
      'msg.text is missing, but msg.payload holds a text: choose msg.payload as the text in the node.',
    text_missing: 'There is no text in __where__: put one there, or choose another place in the node.',
    text_kind: 'What is in __where__ is not a text with at least one letter: give it a text.',
    text_broken:
      'The text holds half a character (a lone surrogate), which cannot be sent: cut texts between whole characters.',
    text_own_empty: "This recipient's own text is empty: fill it in, or leave it out.",
    text_segments:
      'The text takes __segments__ SMS segments, and this node sends __most__ at most: shorten it, or leave out signs such as emojis and typographic quotes.',
  },
  date: {
    date_missing: 'There is no delivery date: give epoch milliseconds, an ISO date or a Date.',
    date_unreadable:
      'The delivery date cannot be read: give whole epoch milliseconds, an ISO date such as 2030-01-31T09:00 or a Date.',
    date_past: 'The delivery date is in the past: choose a later one, or send now.',
  },
  group: {
    group_kind: 'There is no group in __where__: put a name there, or an object with a name.',
    group_unnamed: 'The group has neither a name nor an external id: give it a name.',
    group_missing: 'No group is named in __where__: put the id or the name of a group there.',
    group_value: 'What is in __where__ is not a group: give the id or the name of one.',
    group_delete_id: 'A group is deleted by its id only, so that no other is hit: put its id in __where__.',
    group_similar:
      'This advisor has no group named "__name__". There is one named "__similar__": write the name as it is written there.',
    group_unknown: 'This advisor has no group named "__name__": check the name, or create the group first.',
    group_ambiguous: 'Several groups are named "__name__" (ids __ids__): give the id of the one you mean.',
  },
} as const;

/** All sentences of the nodes, by key; those about answers of the service are in lib/service. */
export const sentences = {
  ...sentencesAbout.phone,
  ...sentencesAbout.text,
  ...sentencesAbout.date,
  ...sentencesAbout.group,
  property_name:
    'What the field "__property__" of this node says is not the name of a property: open the node and write one without spaces or open brackets, such as payload.phone, or choose another source.',
  property_json:
    'What the field "__property__" of this node says is not valid JSON: open the node and check quotes, commas and brackets.',
  property_expression:
    'The JSONata expression in the field "__property__" of this node has a mistake (__reason__): open the node and correct it.',
  property_evaluation:
    'The JSONata expression in the field "__property__" of this node cannot be worked out for this message (__reason__): check the message, or open the node and correct the expression.',
  property_source:
    'The field "__property__" of this node takes its value from a source that this version does not know (__source__): open the node and choose another.',
  property_unreadable:
    'The field "__property__" of this node could not be read (__reason__): open the node and correct it.',
  setting_choice:
    '"__property__" is set to "__value__", which this version does not know: open this node, or its environment, and choose again.',
  setting_number: '"__property__" must be a number: open this node, or its environment, and correct it.',
  setting_whole: '"__property__" must be a whole number: open this node, or its environment, and correct it.',
  setting_min: '"__property__" must be __min__ or more: open this node, or its environment, and correct it.',
  setting_max: '"__property__" must be __max__ or less: open this node, or its environment, and correct it.',
  no_environment: 'This node has no environment, or a disabled one: open it and choose an environment.',
  nobody_authorized:
    'Nobody has authorized "__environment__" yet: open the environment and authorize an advisor.',
  several_advisors:
    'This environment serves several advisors: say which one in msg.advisor or in the node, for none is guessed.',
  advisor_empty:
    'The advisor is to come from __where__, and there is none there: put the key of an advisor there.',
  advisor_value:
    'What is in __where__ is not the key of an advisor: put a text or a number there, or nothing.',
  advisor_own: "This recipient's own advisor is neither a text nor a number: correct it, or leave it out.",
  advisor_unauthorized:
    'The advisor "__advisor__" has to authorize "__environment__": open the environment and authorize.',
  item_missing:
    'There is no id of a wait, a queued item or a list in __where__: put there the id that this node gave with the item.',
  item_gone:
    'There is nothing of that id any more: it has ended, or its node is not running. Read the list again.',
  message_large:
    'The message is larger than the __megabytes__ MB that can be saved at once: nothing was sent. Remove what the node does not need, such as a whole file in msg.payload, or split the list.',
  message_unreadable:
    'The property "__property__" of the message cannot be read, because it throws an error: nothing was sent. Remove it before this node.',
  list_long:
    'The list in __where__ has __count__ entries: nothing was sent. Split it into lists of __most__ at most.',
  unexpected: 'This node met an unexpected fault (__reason__): please report it.',
  placeholder_broken:
    "Double braces in the text hold no field's name: write one between them and close both, or leave the braces out.",
  placeholder_missing: 'There is no "__field__" to fill into the text: give each recipient one.',
  placeholder_own:
    'This recipient has no "__field__" to fill into the text. A text that comes with the message is filled from the recipient\'s own fields only: give this recipient one, or write the text in the node.',
  placeholder_in_payload:
    'There is no "__field__" to fill into the text, but msg.payload has one: write payload.__field__ between the braces.',
  frequency_kind: 'The frequency must be a whole number: correct it, or leave it empty.',
  no_outcome:
    'The service answered with success, but named neither a success nor a failure: this was probably carried out, so look in the texting app before you repeat it.',
  consent_required: 'This person has not consented to texts: request consent, then send again.',
  rejected:
    'The service refused this recipient: “__said__” Correct the number, or leave this person out and do not ask again.',
  rejected_plain:
    'The service refused this recipient: read its reason in msg.error.detail (at a Catch node msg.error.cause.detail), then correct the number, or leave this person out and do not ask again.',
  consent_not_believed:
    'The service reports this consent as accepted, and still refused the text for lack of consent: ask its provider why, with the reason in msg.error.detail.',
  cancelled:
    'This was cancelled before it was sent, by msg.reset, texting activity or in the sidebar: send it again if it is still wanted.',
  dry_run_round:
    'In a dry run nobody accepts, so that asking again would go round for ever: the dry run ends here.',
  blocked:
    'This number is on the do-not-text list: nothing was sent. Take it off the list first, if its owner wants to be texted again.',
  blocked_unreadable:
    'The entry of this number on the do-not-text list cannot be read: nothing was sent. Unblock the number if its owner wants to be texted again, or block it again.',
  blocked_list_unreadable:
    'A part of the do-not-text list cannot be read, so nobody is texted: see the log, and restore the data of this Node-RED or its credentialSecret.',
  quiet_hours:
    'It is outside the hours in which this recipient may be texted: send it again later, or choose in the environment to hold texts until then.',
  zone_missing:
    'Nobody can say which time zone this number is in, so it is not known when it may be texted: give the recipient a timeZone, or set the time zone of the environment.',
  zone_unknown:
    'The timeZone of this recipient is not the name of a time zone: give one such as America/New_York, or leave it out.',
  once_key_missing:
    'The key that a text is to be sent once by is to come from __where__, and there is neither a text nor a number there: put one there, or choose in the node to send every text.',
  once_unknown:
    'A text with the same key was sent before, and nobody knows whether it got there: look in the texting app before you send another.',
  reason_kind: 'What is in __where__ is not a text: give the reason as a text, or leave it empty.',
  not_accepted:
    'This person has not accepted to be texted yet: wait for consent, or ask for it with a consent request.',
  consent_expired:
    'This person did not accept within the time set in the node: send a new consent request if it is still wanted.',
  unknown_number:
    'No contact of this advisor has this phone number: check the number, or send it a consent request first.',
  unknown_member: 'This advisor has no contact with this member id: check the id.',
  wait_cancelled:
    'This wait was cancelled, by msg.reset, texting activity or in the sidebar: begin a new one if it is still wanted.',
  consent_limit:
    'This person was asked __count__ times without an acceptance, which is the limit set in the node: ask in another way, or raise the limit.',
  member_missing: 'There is no member id in __where__: put one there, or choose another place in the node.',
  member_kind:
    'What is in __where__ is not a member id: give it a whole number, or an id as the service gave it.',
  store_away:
    'It is not known yet who has authorized, because the stored state is not to be had now: the log says why. Name the advisor in the node or in msg.advisor, or try again later.',
  queue_full:
    'Too much waits to be put on record already, because the store takes no more at the moment: nothing was sent. See the status and the log, and send it again later.',
  stale:
    'This waited too long over a restart and was not carried out: send it in again if it is still wanted, or raise "Resume within" in the environment.',
  environment_changed:
    'The node was given another environment before this was sent: send it again if it is still wanted.',
  node_changed:
    'The node became a node of another kind before this was carried out: send it again if it is still wanted.',
  unknown_after_restart:
    'The runtime stopped while this was being sent, so it may or may not have been carried out: check before you repeat it.',
  unknown_after_crashes:
    'Node-RED crashed several times in a row, the last time while this was carried out, so it is not tried again. It may or may not have been carried out: check before you repeat it.',
  cancelled_by_close:
    'The node was stopped by a deploy or a shutdown before this was carried out: send it again if it is still wanted.',
  id_missing: 'There is no id in __where__: put one there, or choose another place in the node.',
  id_kind:
    'What is in __where__ is not an id: give it a whole number, or a text of digits, or an id as the service gave it.',
  list_empty: 'The list in __where__ is empty: give it at least one entry.',
  page_other:
    'The service gave page __given__ when asked for page __page__: it probably has another name for the page number, so set that under "Query names" in the environment.',
  page_repeated:
    'The service gave the same records again when asked for page __page__: it probably has another name for the page number, so set that under "Query names" in the environment.',
  pages_endless:
    'The service has given __pages__ pages with __records__ records and still says that there are more, so the search was stopped. Check "__address__" and "__names__" in the environment, or ask the provider of the service.',
  contact_kind: 'There is no contact in __where__: put an object with fields such as firstName there.',
  contact_text:
    'What is in __where__ is a text, not a contact: make an object of it, for example with a JSON node.',
  contact_unknown:
    'None of the fields of a contact is filled in; what is there has other names (__fields__): use names such as firstName.',
  contact_misspelt:
    'None of the fields of a contact is filled in, and "__field__" is not one of them: write "__meant__" instead.',
  contact_empty: 'None of the fields of a contact is filled in: give at least one, such as firstName.',
  contact_id_in_list: 'This contact of the list has no contactId of its own: give each one the id it has.',
  match_no_email:
    'The contact has neither an emailAddress to be found by nor a contactId: give it one, or match by full name.',
  match_no_name:
    'The contact has neither a firstName or lastName to be found by nor a contactId: give it one, or match by e-mail address.',
  match_several_email:
    'Several contacts have this e-mail address (ids __ids__): put the id of the one you mean into contactId.',
  match_several_name:
    'Several contacts have this name (ids __ids__): put the id of the one you mean into contactId.',
  match_untold:
    'The service gave no contact with "__field__", so nothing was written, for it might have been created twice: match by another field, or give a contactId.',
  field_text: 'The field "__field__" must be a text: correct it, or leave it out.',
  field_number: 'The field "__field__" must be a number: correct it, or leave it out.',
  group_ids_missing:
    'The service gave this contact without its groups, so nothing was written, for that would have taken it out of all the others: ask the service for "groupIds", or use "set a contact\'s groups".',
  search_kind:
    'What is in __where__ is not a search text: put a text there, or leave it empty to find everything.',
  search_broken:
    'What is in __where__ holds half a character (a lone surrogate) that cannot be searched for: cut the text between whole characters.',
  search_long: 'The search text has __length__ characters: shorten it to __longest__ at most.',
  environment_undeployed: 'This environment is not deployed: deploy it, then try again.',
  secrets_again: 'The addresses have changed: enter the secrets again, or deploy first.',
  variables_withheld:
    'The form refers to __variables__, which is not deployed there, and only who may deploy can try a variable before: deploy first, or ask somebody who may.',
  names_json: 'The query names of the environment are not valid JSON: correct them.',
  names_record:
    'The query names of the environment must be an object such as {"page": "pageNumber"}: correct them.',
  names_unknown:
    'The query names of the environment have "__key__", which is none of ours: use __known__, and write on the right what your service calls it.',
  names_text: 'The query name "__key__" of the environment must be a text: correct it.',
  variables_unset: '"__name__" is not ready: set __variables__ in the environment of Node-RED.',
  pg_missing:
    '"__name__" keeps its state in PostgreSQL, which needs the package pg: run "npm install pg" in the user directory of Node-RED and restart it.',
  settings_missing: '"__name__" is not ready: open the environment and fill in __settings__.',
  setting_address: '"__name__" is not ready: "__setting__" is not a full address; it begins with https://.',
  setting_insecure:
    '"__name__" is not ready: "__setting__" must begin with https://, unless it is on this machine.',
  setting_fragment: '"__name__" is not ready: "__setting__" must have no part after #.',
  setting_wildcard:
    '"__name__" is not ready: "__setting__" must be one exact address, without the wildcard *: enter it as it is registered.',
  setting_prefix:
    '"__name__" is not ready: "__setting__" must be one word without slashes, dots or spaces; leave it empty for the usual one.',
  setting_proxy:
    '"__name__" is not ready: "__setting__" is not the address of an HTTP proxy, such as http://proxy.example:3128.',
  setting_proxy_password:
    '"__name__" is not ready: "__setting__" holds a user or a password: name environment variables in their place, and set those where Node-RED runs.',
  setting_pattern:
    '"__setting__" is not a valid regular expression: open the environment and correct it, or leave it empty.',
  filter_kind: 'What to look for in __where__ is not a text: give words, or nothing to find everything.',
  members_untold:
    'The service does not say which groups a contact is in, so the members of this group cannot be told: ask its provider.',
  member_without_phone: 'Contact __id__ has no phone number: enter one in the address book.',
  setting_country:
    '"__country__" is not the code of a country: open the environment and enter two letters such as US, or leave it empty.',
  setting_time_zone:
    '"__timeZone__" is not the name of a time zone: open the environment and enter one such as America/New_York, or leave it empty.',
  setting_hours:
    'The hours for texts need both a beginning and an end, and two different ones: open the environment and set both, or neither.',
  setting_time:
    '"__time__" is not a time of day: open the environment and write it as 08:00 or 21:30, or leave both times empty.',
  service_unknown: '"__name__" is not ready: "__setting__" must be simulator, sandbox or production.',
  advisor_kind: 'The advisor must be a text of 1 to 200 characters: correct it.',
} as const;

export type NodeErrorKey = keyof typeof sentences;

export const nodeError = errorMaker(sentences, wordFor('en-US'));

export const invalidInput = (key: NodeErrorKey, values: MessageValues = {}): ServiceError =>
  nodeError('invalid_input', key, values);

const subjects = Object.entries(sentencesAbout);

/** What the value should be that a sentence is about, where a status has a word for it. */
export const inputKindOf = (key: string): string | undefined =>
  subjects.find(([, about]) => Object.hasOwn(about, key))?.[0];
