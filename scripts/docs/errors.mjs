import { readJson } from '../build/folders.mjs';
import { table } from './table.mjs';

/** An explanation of every code. If a code and its explanation do not match, `npm run docs` fails. */
const words = {
  consent_required: [
    'The person has not given consent, and nothing is wired to _needs consent_ (or to _not accepted_).',
    'Wire that output to _request consent_. Do not send again before they accept.',
  ],
  rejected: [
    'The service refused this recipient: they opted out, the number cannot receive texts, or it keeps refusing for lack of a consent that it reports as accepted. `detail` has its own words.',
    'Do not try again, and do not ask for consent again.',
  ],
  invalid_input: [
    'Something in the message or the node is missing or wrong: a number, a text, a date in the past, an advisor that could be several. Nothing was sent.',
    'The message names it; put it right.',
  ],
  authorization_required: [
    'The advisor has not authorized, or the authorization ended. Nothing was sent.',
    'Open the environment and press _Authorize_, or send the advisor a link. Then send the message again.',
  ],
  network_error: [
    'The service was not reached by any attempt, or a read kept failing. Nothing was sent.',
    'Safe to send again. _Test connection_ in the environment tells an address from a network problem.',
  ],
  outcome_unknown: [
    'The connection broke, a gateway answered in place of the service, or Node-RED was killed, after the request had gone out: it may have been carried out or not. Also when an earlier attempt failed on the side of the service and the next did not reach it.',
    'Look first (the archive, the address book, the phone). Sending again may text somebody twice.',
  ],
  invalid_response: [
    'The service answered something that is not in its contract. A text, consent request or create that was answered with success was probably carried out; `message` then says so.',
    'Where it was probably carried out, look before you repeat it. Else check the service address; then tell the provider.',
  ],
  consent_limit: [
    'This number has been asked as often as the node allows and has not answered.',
    'Reach the person another way. The limit is in _request consent_.',
  ],
  cancelled: [
    'It was ended by `msg.reset` or by a close before it began.',
    'Nothing was sent. Send it again if it is still wanted.',
  ],
  stale: [
    'It was waiting to be sent when Node-RED ended, and Node-RED came back later than _Resume within_ allows.',
    'Nothing was sent. Decide whether the text still makes sense, and send it again.',
  ],
  queue_full: [
    'The store (disk or database) takes nothing at the moment, and 32 MB already wait for it.',
    'Nothing was sent. See the status and the log for what is wrong with the store, then send it again.',
  ],
  blocked: [
    'The number is on the do-not-text list, or a part of that list cannot be read. Nothing was sent.',
    'Leave this person alone. If they want to be texted again, take them off the list with _do not text_.',
  ],
  quiet_hours: [
    'It is outside the hours in which this recipient may be texted; `notBefore` says until when, in epoch milliseconds. Nothing was sent.',
    'Send it again then, or choose in the environment to hold texts until the hours begin.',
  ],
  not_configured: [
    'The environment is missing, or not filled in.',
    'Open the node or the environment: what is missing is marked.',
  ],
  invalid_request: [
    'The service did not accept the request.',
    '`detail` says what; a number or a field is likely wrong.',
  ],
  unauthorized: [
    'The service refused the sign-in, also after a fresh token. The authorization is kept.',
    'Check the API key, then authorize again.',
  ],
  forbidden: [
    'A permission is missing; `detail` names it. Without a `detail` it was not the service that refused, but a gateway or firewall in front of it.',
    'Tick the permission in the environment and authorize again; if it cannot be asked for, have it provisioned. Without a `detail`, check the API key and the service address first.',
  ],
  not_found: [
    'There is no such contact or group; for a consent lookup: nobody in the address book has the number. Without a `detail` it was a gateway or firewall that answered.',
    'Check the id or the number; without a `detail`, the service address and its prefixes.',
  ],
  conflict: [
    'The advisor’s account is not set up to collect consent.',
    'Contact the operator of the service.',
  ],
  version_mismatch: [
    'The service says that a version does not match. Its contract does not say which, or how it is compared.',
    'Read `detail`, and ask the provider, with the `traceId`.',
  ],
  rate_limited: [
    'The service kept asking to slow down, for an hour in all. Before that, the nodes wait and go on by themselves.',
    'Send less at once, or set _Requests per second_.',
  ],
  payload_too_large: ['The request was too large.', 'Shorten the text.'],
  unsupported_media_type: [
    'The service did not accept the format of the request.',
    'Tell the provider, with the `traceId`.',
  ],
  downstream_timeout: [
    'The service has trouble behind the scenes. It was tried several times.',
    'Try again later.',
  ],
  downstream_unavailable: [
    'The service has trouble behind the scenes. It was tried several times.',
    'Try again later.',
  ],
  internal_error: [
    'The service has trouble. It was tried several times.',
    'Try again later; tell the provider, with the `traceId`, if it lasts.',
  ],
};

const fields = [
  ['`message`', 'one sentence that says what to do'],
  ['`code`', 'one of the codes below; a code of the service that this version does not know passes through'],
  [
    '`status`, `title`, `detail`, `details`, `traceId`, `instance`, `type`',
    'what the service said, where it said something',
  ],
  [
    '`retryable`',
    'whether the same request may succeed later: the service’s word, else true for `network_error` and `authorization_required` only',
  ],
  ['`attempts`', 'how many requests were made'],
  ['`source`', '`{ id, type, name }` of the node, as a Catch node gives it'],
];

/** The status text of a code, without the time. */
const statusOf = (code) => {
  const { status } = readJson('locales', 'en-US', 'common.json');
  const { failed } = readJson('locales', 'en-US', 'runtime.json');
  const action = { authorization_required: status.authorizeAgain, not_configured: status.notConfigured };
  return action[code] ?? failed[code];
};

export const errorsPage = ({ serviceCodes, ownCodes }) => {
  const codes = [...ownCodes, ...Object.keys(serviceCodes)];
  const speechless = codes.find((code) => !(code in words));
  const surplus = Object.keys(words).find((code) => !codes.includes(code));
  if (speechless ?? surplus)
    throw new Error(`scripts/docs/errors.mjs and lib/service/errors.ts differ in ${speechless ?? surplus}.`);
  return [
    '# Error codes',
    '',
    'Generated by `npm run docs`; a code without words here stops it.',
    '',
    'A failure is a message. It leaves on the second output with `msg.error`, and `msg.payload` stays as it was. With nothing wired there, a Catch node gets it: `msg.error.code` is the same, and `msg.error.cause` is the whole of what follows.',
    '',
    table(['field of `msg.error`', 'meaning'], fields),
    '',
    'The status of the node says the kind of the last failure and when it happened, such as `not found 14:05`: the second column below. Of an invalid input it says what is invalid: a number, a text or a date.',
    '',
    '## From this package',
    '',
    table(
      ['code', 'status', 'what happened', 'what to do'],
      ownCodes.map((code) => [`\`${code}\``, statusOf(code), ...words[code]]),
    ),
    '',
    '## From the service',
    '',
    table(
      ['code', 'status', 'HTTP', 'retryable', 'what happened', 'what to do'],
      Object.entries(serviceCodes).map(([code, { status, retryable }]) => [
        `\`${code}\``,
        statusOf(code),
        status,
        retryable ? 'yes' : 'no',
        ...words[code],
      ]),
    ),
    '',
    '## What is tried again, and what is not',
    '',
    'Reads, updates and deletes are repeated when the outcome is unknown: doing them twice changes nothing. A text, a consent request or a new contact is repeated only when it cannot have been carried out (no connection, 429, 401), or when the service itself says that it may be repeated. _Repeat sends_ in the environment makes that stricter (`never`) or looser (`always`, which can text somebody twice).',
    '',
    'A switch by code, in a Function or Switch node:',
    '',
    '```js',
    "if (msg.error.code === 'outcome_unknown') return [null, msg]; // a person looks first",
    'if (msg.error.retryable) return [msg, null]; // a Delay node, then back to send text',
    'return [null, msg];',
    '```',
    '',
  ].join('\n');
};
