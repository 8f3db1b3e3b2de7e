import { type MessageValues, type ServiceError, errorMaker } from '../service/errors';
import { wordFor } from './language';

/** Sentences about an invalid value, by what it should be: a status has a word for each. */
const sentencesAbout = {
  phone: {
    phone_missing:
      'There is no phone number in __where__: put one there, or choose another source in the node.',
    phone_entry:
      'This entry of the list in __where__ has no phone number: use a number, or an object with the number in the field __column__.',
    phone_field_empty:
      'The field "__column__" of this entry of the list in __where__ is empty: enter a phone number there.',
    phone_field_missing:
      'This entry of the list in __where__ has no field "__column__". Its fields are __fields__: under "Column" in the node, enter the one with the phone number.',
    phone_field_likely:
      'This entry of the list in __where__ has no field "__column__". Its fields are __fields__: enter "__likely__" under "Column" in the node.',
    phone_json:
      '__where__ contains text that looks like a list or an object: convert it, for example with a JSON node.',
    phone_kind:
      'A phone number must be text such as +12025550123. A list may contain numbers, or objects with a phone.',
    phone_none: 'This is not a phone number: use one such as +12025550123.',
    phone_words:
      'There is text beside the phone number: leave only the number there, and put a name into a field of its own.',
    phone_digits:
      'The phone number has __count__ digits: with its country code it must have 8 to 15, and it must not start with 0.',
    phone_format:
      'The phone number contains characters other than digits: write a plus sign, then the country code and the rest in digits.',
    phone_country:
      'The phone number has no country code: start it with + and the code, such as +1 202 555 0123, or choose a Country in the environment.',
    phone_impossible:
      'This phone number is not possible in __country__: write it with + and its country code.',
    phone_short:
      'The phone number is too short (__count__ digits): write the complete number with + and its country code, such as +1 202 555 0123.',
    phones_empty: 'The list in __where__ is empty: add at least one number.',
    phones_kind: '__where__ contains neither a phone number nor a list of them: put one there.',
  },
  text: {
    text_literal_empty: 'The text is empty: enter one in the node.',
    text_in_payload:
      'msg.text is missing, but msg.payload contains text: choose msg.payload as the text in the node.',
    text_missing: 'There is no text in __where__: put one there, or choose another source in the node.',
    text_kind: '__where__ contains no text, or only spaces: put a text there.',
    text_broken:
      'The text contains half a character (a lone surrogate), which cannot be sent: split texts between whole characters.',
    text_own_empty: "This recipient's own text is empty: fill it in, or leave it out.",
    text_segments:
      'The text takes __segments__ SMS segments, but this node sends at most __most__: shorten it, or leave out characters such as emojis and curly quotes.',
  },
  date: {
    date_missing: 'There is no delivery date: use epoch milliseconds, an ISO date or a Date.',
    date_unreadable:
      'The delivery date cannot be read: use whole epoch milliseconds, an ISO date such as 2030-01-31T09:00, or a Date.',
    date_past: 'The delivery date is in the past: choose a later one, or send now.',
  },
  group: {
    group_kind: 'There is no group in __where__: put a name there, or an object with a name.',
    group_unnamed: 'The group has neither a name nor an external id: give it a name.',
    group_missing: '__where__ names no group: put the id or the name of a group there.',
    group_value: 'The value in __where__ is not a group: use the id or the name of a group.',
    group_delete_id:
      'A group can only be deleted by its id, so that no other group is deleted by mistake: put its id in __where__.',
    group_similar:
      'This advisor has no group named "__name__", but there is one named "__similar__": use exactly that name.',
    group_unknown: 'This advisor has no group named "__name__": check the name, or create the group first.',
    group_ambiguous: 'Several groups are named "__name__" (ids __ids__): use the id of the one you mean.',
  },
} as const;

/** All sentences of the nodes, by key; those about answers of the service are in lib/service. */
export const sentences = {
  ...sentencesAbout.phone,
  ...sentencesAbout.text,
  ...sentencesAbout.date,
  ...sentencesAbout.group,
  property_name:
    'The field "__property__" of this node does not contain a valid property name: open the node and enter one without spaces or unclosed brackets, such as payload.phone, or choose another source.',
  property_json:
    'The field "__property__" of this node does not contain valid JSON: open the node and check quotes, commas and brackets.',
  property_expression:
    'The JSONata expression in the field "__property__" of this node is invalid (__reason__): open the node and correct it.',
  property_evaluation:
    'The JSONata expression in the field "__property__" of this node failed for this message (__reason__): check the message, or open the node and correct the expression.',
  property_source:
    'The field "__property__" of this node reads its value from a source that this version does not know (__source__): open the node and choose another.',
  property_unreadable:
    'The field "__property__" of this node could not be read (__reason__): open the node and correct it.',
  setting_choice:
    '"__property__" is set to "__value__", which this version does not know: open this node, or its environment, and choose again.',
  setting_number: '"__property__" must be a number: open this node, or its environment, and correct it.',
  setting_whole: '"__property__" must be a whole number: open this node, or its environment, and correct it.',
  setting_min: '"__property__" must be __min__ or more: open this node, or its environment, and correct it.',
  setting_max: '"__property__" must be __max__ or less: open this node, or its environment, and correct it.',
  no_environment:
    'This node has no environment, or its environment is disabled: open the node and choose one.',
  nobody_authorized:
    'Nobody has authorized "__environment__" yet: open the environment and authorize an advisor.',
  several_advisors:
    'Several advisors have authorized this environment: name one in msg.advisor or in the node.',
  advisor_empty: '__where__ names no advisor: put the key of an advisor there.',
  advisor_value: "The value in __where__ is not an advisor's key: use text or a number, or leave it empty.",
  advisor_own: "This recipient's own advisor is neither text nor a number: correct it, or leave it out.",
  advisor_unauthorized:
    'The advisor "__advisor__" has not authorized "__environment__": open the environment and authorize.',
  item_missing:
    '__where__ contains no id of a wait, a queued item or a list: use the id that this node emitted with the item.',
  item_gone:
    'Nothing with this id exists any more: it has finished, or its node is not running. Read the list again.',
  message_large:
    'Nothing was sent: the message is larger than the __megabytes__ MB that can be saved at once. Remove what the node does not need, such as a whole file in msg.payload, or split the list.',
  message_unreadable:
    'Nothing was sent: reading the property "__property__" of the message throws an error. Remove it before this node.',
  message_deep:
    'Nothing was sent: the message has more than __levels__ levels of objects within objects, which Node-RED cannot copy. Remove what the node does not need.',
  list_long:
    'Nothing was sent: the list in __where__ has __count__ entries. Split it into lists of at most __most__.',
  unexpected: 'This node had an unexpected error (__reason__): please report it.',
  placeholder_broken:
    'The text has double braces without a field name: write one between them and close both, or remove the braces.',
  placeholder_missing: 'There is no "__field__" to fill into the text: add it to each recipient.',
  placeholder_braces:
    'The value of "__field__" contains double braces, which would be sent as they are: correct it.',
  placeholder_own:
    'This recipient has no "__field__" to fill into the text. A text that comes with the message is filled only from the recipient\'s own fields: add the field to this recipient, or write the text in the node.',
  placeholder_in_payload:
    'There is no "__field__" to fill into the text, but msg.payload has one: write payload.__field__ between the braces.',
  frequency_kind: 'The recurrence must be a whole number: correct it, or leave it empty.',
  no_outcome:
    'The service reported success, but named neither a success nor a failure. This was probably carried out: look in the texting app before you try again.',
  consent_required: 'This person has not consented to texts: request consent, then send again.',
  rejected:
    'The service refused this recipient: “__said__” Correct the number, or leave this person out and do not ask again.',
  rejected_plain:
    'The service refused this recipient: read its reason in msg.error.detail (in a Catch node: msg.error.cause.detail), then correct the number, or leave this person out and do not ask again.',
  consent_not_believed:
    'The service reports this consent as accepted, but still refused the text for lack of consent: ask the operator why, and quote msg.error.detail.',
  cancelled:
    'This was cancelled before it was sent, by msg.reset, by texting activity or in the sidebar: send it again if you still need it.',
  dry_run_round: 'Nobody can accept in a dry run, so asking again would never end: the dry run stops here.',
  blocked:
    'Nothing was sent: this number is on the do-not-text list. Take it off the list only if its owner wants to be texted again.',
  blocked_unreadable:
    'Nothing was sent: the entry of this number on the do-not-text list cannot be read. Block the number again, or unblock it if its owner wants to be texted again.',
  blocked_list_unreadable:
    'Nobody is texted: part of the do-not-text list cannot be read. See the log, and restore the data of this Node-RED or its credentialSecret.',
  quiet_hours:
    "This is outside the recipient's text hours: send it again later, or set the environment to hold texts until then.",
  zone_missing:
    "The time zone of this number is unknown, so its text hours are unknown too: give the recipient a timeZone, or set the environment's time zone.",
  zone_unknown:
    "This recipient's timeZone is not the name of a time zone: use one such as America/New_York, or leave it out.",
  once_key_missing:
    'The send-once key is read from __where__, which contains neither text nor a number: put a key there, or turn off Send once in the node.',
  once_unknown:
    'A text with the same key was sent before, and its outcome is unknown: look in the texting app before you send another.',
  reason_kind: 'The value in __where__ is not text: use text as the reason, or leave it empty.',
  not_accepted: 'This person has not consented to texts yet: wait for consent, or send a consent request.',
  consent_expired:
    'This person did not accept within the time set in the node: send a new consent request if you still need it.',
  unknown_number:
    'No contact of this advisor has this phone number: check the number, or send it a consent request first.',
  unknown_member: 'This advisor has no contact with this member id: check the id.',
  wait_cancelled:
    'This wait was cancelled by msg.reset, by texting activity or in the sidebar: start a new one if you still need it.',
  consent_limit:
    'This person was asked __count__ times without an acceptance. That is the limit set in the node: ask in another way, or raise the limit.',
  member_missing: 'There is no member id in __where__: put one there, or choose another source in the node.',
  member_kind:
    'The value in __where__ is not a member id: use a whole number, or an id as the service gave it.',
  store_away:
    'The advisor cannot be determined because the saved data is unavailable right now: see the log. Name the advisor in the node or in msg.advisor, or try again later.',
  queue_full:
    'Nothing was sent: too many messages are waiting to be saved. See the status and the log, and send it again later.',
  stale:
    'This was not carried out because Node-RED was down for too long: send it again if you still need it, or raise "Resume within" in the environment.',
  environment_changed:
    'The node was switched to another environment before this was sent: send it again if you still need it.',
  node_changed:
    'The node was replaced by one of another type before this was carried out: send it again if you still need it.',
  unknown_after_restart:
    'Node-RED stopped while this was being sent, so it may or may not have been carried out: check before you try again.',
  unknown_after_crashes:
    'Node-RED crashed several times in a row, most recently while this was being carried out, so it is not retried. It may or may not have been carried out: check before you try again.',
  cancelled_by_close:
    'A deploy or a shutdown stopped the node before this was carried out: send it again if you still need it.',
  id_missing: 'There is no id in __where__: put one there, or choose another source in the node.',
  id_kind:
    'The value in __where__ is not an id: use a whole number, a string of digits, or an id as the service gave it.',
  list_empty: 'The list in __where__ is empty: add at least one entry.',
  page_other:
    'The service returned page __given__ instead of page __page__. It probably has another name for the page number: set it under "Query names" in the environment.',
  page_repeated:
    'The service returned the same records again for page __page__. It probably has another name for the page number: set it under "Query names" in the environment.',
  pages_endless:
    'The search was stopped: the service has returned __pages__ pages with __records__ records and still reports more. Check "__address__" and "__names__" in the environment, or ask the operator of the service.',
  contact_kind: 'There is no contact in __where__: put an object with fields such as firstName there.',
  contact_text:
    '__where__ contains text, not a contact: convert it to an object, for example with a JSON node.',
  contact_unknown:
    'The contact has none of the known fields; its fields are __fields__: use names such as firstName.',
  contact_misspelt:
    'The contact has none of the known fields, and "__field__" is not one of them: write "__meant__" instead.',
  contact_empty: 'The contact has no field filled in: fill in at least one, such as firstName.',
  contact_id_in_list: 'This contact of the list has no contactId: give each contact its own id.',
  match_no_email:
    'The contact has neither an emailAddress to match by nor a contactId: add one, or match by full name.',
  match_no_name:
    'The contact has neither a firstName or lastName to match by nor a contactId: add one, or match by e-mail address.',
  match_several_email:
    'Several contacts have this e-mail address (ids __ids__): put the id of the one you mean in contactId.',
  match_several_name:
    'Several contacts have this name (ids __ids__): put the id of the one you mean in contactId.',
  match_unclear:
    'Nothing was saved: the service returned no contact with "__field__", so the contact might have been created twice. Match by another field, or give a contactId.',
  field_text: 'The field "__field__" must be text: correct it, or leave it out.',
  field_number: 'The field "__field__" must be a number: correct it, or leave it out.',
  group_ids_missing:
    'Nothing was saved: the service returned this contact without its groups, so the contact would have lost its other groups. Ask the operator for "groupIds", or use "set a contact\'s groups".',
  search_kind: 'The value in __where__ is not a search text: use text, or leave it empty to find everything.',
  search_broken:
    'The value in __where__ contains half a character (a lone surrogate), which cannot be searched for: split texts between whole characters.',
  search_long: 'The search text has __length__ characters: shorten it to at most __longest__.',
  environment_undeployed: 'This environment is not deployed: deploy it, then try again.',
  secrets_again: 'The addresses have changed: enter the secrets again, or deploy first.',
  variables_withheld:
    'The form uses __variables__, which is not deployed yet. Only users who may deploy can test a variable before that: deploy first, or ask someone who may.',
  names_json: 'Query names in the environment is not valid JSON: correct it.',
  names_record:
    'Query names in the environment must be an object such as {"page": "pageNumber"}: correct it.',
  names_unknown:
    'Query names in the environment contains the unknown name "__key__": use __known__ on the left, and the name that your service uses on the right.',
  names_text: 'The query name "__key__" in the environment must be text: correct it.',
  variables_unset: '"__name__" is not ready: set __variables__ in the environment of Node-RED.',
  pg_missing:
    '"__name__" keeps its state in PostgreSQL, which needs the package pg: run "npm install pg" in the Node-RED user directory, then restart Node-RED.',
  settings_missing: '"__name__" is not ready: open the environment and fill in __settings__.',
  setting_address:
    '"__name__" is not ready: "__setting__" is not a full address; enter one that begins with https://.',
  setting_insecure:
    '"__name__" is not ready: "__setting__" must begin with https://, unless it is on this machine.',
  setting_fragment: '"__name__" is not ready: "__setting__" contains a #; remove it and everything after it.',
  setting_wildcard:
    '"__name__" is not ready: "__setting__" must be one exact address without a wildcard (*); enter it as it is registered.',
  setting_prefix:
    '"__name__" is not ready: "__setting__" must be one word without slashes, dots or spaces; leave it empty for the default.',
  setting_proxy:
    '"__name__" is not ready: "__setting__" is not the address of an HTTP proxy, such as http://proxy.example:3128.',
  setting_proxy_password:
    '"__name__" is not ready: "__setting__" contains a user name or a password. Use environment variables instead, and set them where Node-RED runs.',
  setting_pattern:
    '"__setting__" is not a valid regular expression: open the environment and correct it, or leave it empty.',
  filter_kind: 'The filter in __where__ is not text: use words, or leave it empty to find everything.',
  members_unclear:
    'The members of this group cannot be determined because the service does not report the groups of a contact: ask the operator.',
  member_without_phone: 'Contact __id__ has no phone number: enter one in the address book.',
  setting_country:
    '"__country__" is not a country code: open the environment and enter two letters such as US, or leave it empty.',
  setting_time_zone:
    '"__timeZone__" is not the name of a time zone: open the environment and enter one such as America/New_York, or leave it empty.',
  setting_hours:
    'Text hours need a start and an end that differ: open the environment and set both, or neither.',
  setting_time:
    '"__time__" is not a time of day: open the environment and enter one such as 08:00 or 21:30, or leave both times empty.',
  service_unknown: '"__name__" is not ready: "__setting__" must be simulator, sandbox or production.',
  advisor_kind: "The advisor's key must be text of 1 to 200 characters: correct it.",
} as const;

export type NodeErrorKey = keyof typeof sentences;

export const nodeError = errorMaker(sentences, wordFor('en-US'));

export const invalidInput = (key: NodeErrorKey, values: MessageValues = {}): ServiceError =>
  nodeError('invalid_input', key, values);

const subjects = Object.entries(sentencesAbout);

/** The kind of value that a sentence is about, if a status has a word for it. */
export const inputKindOf = (key: string): string | undefined =>
  subjects.find(([, about]) => Object.hasOwn(about, key))?.[0];
