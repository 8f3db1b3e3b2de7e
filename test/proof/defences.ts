import type { Titles } from './threats';

/** A defence against a threat, and the tests that fail without it. */
export interface Defence {
  readonly what: string;
  /** Its file, and the replacements that remove it. */
  readonly file: string;
  readonly changes: readonly (readonly [defence: string, instead: string])[];
  readonly shownBy: Titles;
  /** The tests run the output of `npm run build`. */
  readonly needsBuild?: boolean;
}

const authorization = 'lib/auth/authorization.ts';
const form = 'nodes/environment/form.ts';

/**
 * By the number of the threat. `npm run proof -- threats` removes each from a copy of the sources, and checks that its
 * tests fail.
 */
export const defences: Readonly<Record<number, readonly Defence[]>> = {
  1: [
    {
      what: 'a state is valid once',
      file: authorization,
      changes: [['    this.pending.delete(returned.state);\n', '']],
      shownBy: { 'unit/auth/authorization.test.ts': ['accepts a callback once'] },
    },
    {
      what: 'a state is valid for ten minutes',
      file: authorization,
      changes: [["    if (clock.now() >= expiresAt) return { ok: false, why: 'expired' };\n", '']],
      shownBy: { 'unit/auth/authorization.test.ts': ['after ten minutes'] },
    },
    {
      what: 'a state is bound to its environment',
      file: authorization,
      changes: [
        ["('pastedFor' in returning && pending.connection.environment !== returning.pastedFor)", 'false'],
      ],
      shownBy: {
        'unit/auth/authorization.test.ts': [
          'when finished for another environment, which leaves the request valid',
        ],
      },
    },
    {
      what: 'a state is bound to the browser that started',
      file: authorization,
      changes: [
        ["      if (isOther) return { ok: false, why: isDenied ? 'denied' : 'otherBrowser' };\n", ''],
      ],
      shownBy: {
        'unit/auth/authorization.test.ts': [
          'can only be finished there, and an attempt elsewhere does no harm',
        ],
      },
    },
    {
      what: 'a state cannot be guessed',
      file: authorization,
      changes: [["const state = randomBytes(16).toString('base64url');", "const state = 'state';"]],
      shownBy: { 'unit/auth/authorization.test.ts': ['never uses a state or verifier twice'] },
    },
    {
      what: 'a code is bound to the verifier of its request',
      file: authorization,
      changes: [
        ["const verifier = randomBytes(32).toString('base64url');", "const verifier = 'v'.repeat(43);"],
      ],
      shownBy: { 'unit/auth/authorization.test.ts': ["with the code of another advisor's request"] },
    },
  ],
  2: [
    {
      what: 'every route asks for its permission',
      file: 'nodes/environment/admin-routes.ts',
      changes: [['      RED.auth.needsPermission(permission) as RequestHandler,\n', '']],
      shownBy: {
        'node-red/security/routes.test.ts': [
          'each require one of our permissions, except those that are open to all',
        ],
      },
    },
    {
      what: 'users who may only read change nothing',
      file: 'nodes/environment/admin-routes.ts',
      changes: [
        [
          "const write = { method: 'post', permission: 'advisor-texting.write' } as const;",
          "const write = { method: 'post', permission: 'advisor-texting.read' } as const;",
        ],
      ],
      shownBy: { 'node-red/security/routes.test.ts': ['let users who may only read change nothing'] },
    },
    {
      what: 'a variable is resolved for users who may deploy, or where it is deployed',
      file: form,
      changes: [
        ['return this.mayDeploy || textsIn(name, this.written[name]).includes(text);', 'return true;'],
      ],
      shownBy: {
        'node-red/security/routes.test.ts': [
          'resolve no variable for ${user} that the deployed environment does not refer to there (${environment})${inAllForms}',
        ],
      },
      needsBuild: true,
    },
    {
      what: 'the permission decides who may deploy',
      file: 'nodes/environment/admin-routes.ts',
      changes: [
        [
          'return [scope].flat().some((each) => sufficient.includes(each));',
          'return sufficient.length > 0 || scope === undefined;',
        ],
      ],
      shownBy: {
        'node-red/security/routes.test.ts': [
          'resolve no variable for ${user} that the deployed environment does not refer to there (${environment})${inAllForms}',
        ],
      },
      needsBuild: true,
    },
    {
      what: 'no answer contains the value of a variable',
      file: form,
      changes: [
        [
          "if (typeof value === 'string') return hider(value);",
          "if (typeof value === 'string') return value;",
        ],
      ],
      shownBy: {
        'node-red/security/routes.test.ts': [
          'reveal none to ${user} either, who may use them${inAllForms}',
          'name a missing scope as it is written',
        ],
      },
      needsBuild: true,
    },
    {
      what: 'none of our addresses starts with the value of a variable',
      file: 'nodes/environment/admin-routes.ts',
      changes: [["form.hasVariable('redirectUri') ? '' : redirectUri", 'redirectUri']],
      shownBy: {
        'node-red/security/routes.test.ts': [
          'use what the deployed environment refers to for users who may ask, and reveal it to nobody (${grant})',
        ],
      },
      needsBuild: true,
    },
    {
      what: 'addresses of a form are tried only for users who may deploy',
      file: form,
      changes: [['this.mayDeploy ? given : withoutDestinations(flat(given))', 'given']],
      shownBy: {
        'unit/auth/form.test.ts': [
          'reaches no server that only the form names for users who may not deploy, except the one that is ${what}',
        ],
      },
    },
    {
      what: 'secrets of other node types are not read',
      file: form,
      changes: [[" && each['type'] === spec.type", '']],
      shownBy: { 'unit/auth/form.test.ts': ['cannot use what is stored for a node of another type'] },
    },
    {
      what: 'a page of another site cannot post',
      file: 'nodes/environment/admin-routes.ts',
      changes: [["      ...(method === 'post' ? [smallJsonOnly] : []),\n", '']],
      shownBy: {
        'node-red/auth/real-routes.test.ts': [
          'accept only JSON, so that no page of another site can post here',
        ],
      },
      needsBuild: true,
    },
  ],
  3: [
    {
      what: 'a repeated parameter is ignored',
      file: authorization,
      changes: [
        [
          "  if (['state', 'code', 'error'].some((name) => query.getAll(name).length > 1)) return undefined;\n",
          '',
        ],
      ],
      shownBy: {
        'unit/auth/authorization.test.ts': ['when ${name} occurs twice, which leaves the request valid'],
      },
    },
  ],
  4: [
    {
      what: 'the redirect address is the configured one',
      file: 'nodes/environment/admin-routes.ts',
      changes: [
        [
          "const connection = codeConnection(asked.id, asked.form.use(field(asked.request, 'form')));",
          "const found = codeConnection(asked.id, asked.form.use(field(asked.request, 'form')));\n      const host = String(asked.request.headers['x-forwarded-host']);\n      const connection = { ...found, redirectUri: `https://${host}/advisor-texting/callback` };",
        ],
      ],
      shownBy: {
        'node-red/auth/real-routes.test.ts': [
          'use the configured redirect address, whatever host the request names',
        ],
      },
      needsBuild: true,
    },
  ],
  5: [
    {
      what: 'pages come with a policy that runs no script',
      file: 'nodes/environment/pages.ts',
      changes: [["    'Content-Security-Policy': policy,\n", '']],
      shownBy: {
        'node-red/auth/real-routes.test.ts': ['answer the callback with static pages and a strict policy'],
      },
      needsBuild: true,
    },
    {
      what: 'names are text in a picker',
      file: 'lib/editor/picker.ts',
      changes: [
        [
          "{ class: 'advisor-option-title', text: visible(choice.title) }",
          "{ class: 'advisor-option-title', html: visible(choice.title) }",
        ],
      ],
      shownBy: { 'editor/security/browser.test.ts': ['are text in a picker (${id})'] },
      needsBuild: true,
    },
    {
      what: 'errors are text where a list says why it is empty',
      file: 'lib/editor/picker.ts',
      changes: [['note.text(faultText(fault));', 'note.html(faultText(fault));']],
      shownBy: { 'editor/security/browser.test.ts': ['are text where a list says why it is empty'] },
      needsBuild: true,
    },
  ],
  6: [
    {
      what: 'a token that another process has refreshed is used, not refreshed again',
      file: 'lib/auth/tokens.ts',
      changes: [['      if (usable !== undefined && !isNearEnd(grant, now)) return usable;\n', '']],
      shownBy: {
        'unit/auth/tokens.test.ts': [
          'are taken from another process that refreshed them instead of giving up after a 400',
        ],
      },
    },
    {
      what: 'a rotated token is on disk before the new access token is used',
      file: 'lib/auth/tokens.ts',
      changes: [['await vault.refreshed(name, fresh, tried);', 'void vault.refreshed(name, fresh, tried);']],
      shownBy: {
        'unit/auth/tokens.test.ts': ['are used only after the rotated refresh token is on disk'],
      },
    },
    {
      what: 'a rotated token that could not be saved is saved as soon as there is room',
      file: 'lib/auth/vault.ts',
      changes: [
        [
          '        await new Promise<void>((resolve) => this.options.clock.after(backoff(round, 1), resolve));\n',
          '        return false;\n',
        ],
      ],
      shownBy: {
        'unit/auth/tokens.test.ts': ['use it, warn, and save it once there is room (the store ${manner})'],
      },
    },
    {
      what: 'a rotated token that could not be saved is still used',
      file: 'lib/auth/vault.ts',
      changes: [['    this.take(name, { ...this.kept.get(name), entry, unsaved });\n', '']],
      shownBy: {
        'unit/auth/tokens.test.ts': ['use it, warn, and save it once there is room (the store ${manner})'],
      },
    },
    {
      what: 'a refresh does not overwrite a change made meanwhile',
      file: 'lib/auth/vault.ts',
      changes: [
        [
          'const conditions = unsaved.replaces ? [unchanged(table, put, found)] : [];',
          'const conditions = [] as const;',
        ],
      ],
      shownBy: {
        'proof/interleavings.test.ts': [
          'refreshes, sign-outs, authorizations, restarts and kills (processes: ${String(instances)}) never use a refresh token twice or restore one after a sign-out',
        ],
      },
    },
  ],
  7: [
    {
      what: 'a sentence for the log is searched for secrets',
      file: 'lib/runtime/log.ts',
      changes: [['${redact(sentence)}', '${sentence}']],
      shownBy: { 'unit/auth/environment.test.ts': ['logs no number, token or key'] },
    },
    {
      what: 'the editor never gets a secret',
      file: 'nodes/environment/spec.ts',
      changes: [["name: 'clientSecret', secret: true", "name: 'clientSecret', secret: false"]],
      shownBy: {
        'node-red/auth/real-routes.test.ts': ['give the editor no secret of a deployed environment'],
      },
      needsBuild: true,
    },
  ],
  8: [
    {
      what: 'no redirect is followed',
      file: 'lib/service/transport.ts',
      changes: [
        [
          "import { Pool, type Dispatcher } from 'undici';",
          "import { interceptors, Pool, type Dispatcher } from 'undici';",
        ],
        [
          'exchange.start(pool, requestOf(',
          'exchange.start(pool.compose(interceptors.redirect({ maxRedirections: 3 })) as Pool, requestOf(',
        ],
      ],
      shownBy: {
        'unit/service/hostile.test.ts': ['that redirects elsewhere never makes the token arrive there'],
        'unit/service/transport.test.ts': ['follows no redirect'],
      },
    },
    {
      what: 'secrets are sent by HTTPS, or to localhost',
      file: 'lib/service/transport.ts',
      changes: [['if (!isConfidential(url))\n', "if (!isConfidential(url) && setting === '')\n"]],
      shownBy: { 'unit/service/transport.test.ts': ['requires TLS, except on localhost'] },
    },
    {
      what: 'an authorization is sent only to its issuer',
      file: 'lib/auth/vault.ts',
      changes: [['new URL(tokenUrl).origin === new URL(connection.tokenUrl).origin', 'true']],
      shownBy: {
        'unit/auth/tokens.test.ts': ['are never sent to a server other than the one that issued them'],
      },
    },
    {
      what: 'stored secrets are not sent to an address that only a form names',
      file: form,
      changes: [
        [
          'if (this.isMoved(values) && this.isOurs(values))',
          'if (this.isMoved(values) && this.isOurs(values) && form === given)',
        ],
      ],
      shownBy: {
        'unit/auth/form.test.ts': ['sends no stored secret to another server when secrets are ${what}'],
      },
    },
  ],
  9: [
    {
      what: 'a send whose outcome is unknown is not retried',
      file: 'lib/service/retry.ts',
      changes: [["return kind !== 'once' || repeatSends === 'always';", 'return true;']],
      shownBy: {
        'unit/service/faults.test.ts': [
          '${kind}: a send is not retried with ${repeatSends}, and its outcome is unknown',
        ],
        'unit/security/ledger.test.ts': ['repeatSends ${repeatSends}: no text twice'],
      },
    },
    {
      what: 'an item that was started before a kill is not started again',
      file: 'lib/outbox/queue.ts',
      changes: [["    if (state === 'started') return 'unknown';\n", '']],
      shownBy: {
        'proof/interleavings.test.ts': [
          'texts, deploys and kills send nothing twice, emit what was sent, and without a kill emit everything once',
        ],
      },
    },
    {
      what: 'a text with a key is sent once during the lifetime of the key',
      file: 'lib/guards/once.ts',
      changes: [['return wanted ? passWith(', "return wanted && item.advisor === '' ? passWith("]],
      shownBy: {
        'unit/guards/once.test.ts': ['is sent once, and a repeat leaves with the outcome of the first'],
      },
    },
    {
      what: 'a text whose answer cannot be read keeps its key',
      file: 'lib/service/errors.ts',
      changes: [["code === 'outcome_unknown' || code === 'invalid_response'", "code === 'outcome_unknown'"]],
      shownBy: {
        'unit/guards/once.test.ts': ['keeps its key after an answer ${what}: it was probably sent'],
      },
    },
    {
      what: 'only one of two texts that claim a key at the same time gets it',
      file: 'lib/guards/once.ts',
      changes: [['[unchanged(table, at, entry)]))) continue;', '[]))) continue;']],
      shownBy: {
        'proof/interleavings.test.ts': [
          'texts with one key in two processes, of which one may be killed, are sent once, and the others know',
        ],
      },
    },
    {
      what: "a node's accepted item and the previous node's emitted one are one commit",
      file: 'lib/outbox/hand-over.ts',
      changes: [['if (isLast) conclude(id, save);', '']],
      shownBy: {
        'node-red/hand-over.test.ts': [
          'a text after a wait is sent once, even if the process is killed as the service accepts it',
        ],
      },
      needsBuild: true,
    },
    {
      what: 'a process that lost its lease writes nothing more to PostgreSQL',
      file: 'lib/state/postgres-leases.ts',
      changes: [
        [
          'and token = $3 and seq = $10 returning',
          'and token >= 0 * $3::bigint and seq >= 0 * $10::bigint returning',
        ],
      ],
      shownBy: {
        'unit/state/postgres.test.ts': [
          'reject writes from one whose lease was taken over',
          'take over from one that is stopped for longer than its lease, which then writes nothing more',
        ],
      },
    },
    {
      what: 'after PostgreSQL has lost commits, what was accepted before is in doubt',
      file: 'lib/state/postgres.ts',
      changes: [['at <= this.lease.doubt', 'at < -Infinity']],
      shownBy: {
        'unit/state/postgres.test.ts': [
          'notice that the database has lost commits, and leave in doubt what was accepted before',
        ],
      },
    },
  ],
  10: [
    {
      what: 'the records of nodes in a subflow that is a module are kept, also of disabled ones',
      file: 'nodes/environment/removed-data.ts',
      changes: [['    existing.add(allInside);\n', '']],
      shownBy: {
        'unit/outbox/removed-nodes.test.ts': ['are kept for its nodes, even if it is disabled'],
      },
    },
    {
      what: 'the id of a node in a subflow may have dashes',
      file: 'lib/outbox/removed-nodes.ts',
      changes: [["dash = id.indexOf('-', dash + 1)", 'dash = -1']],
      shownBy: {
        'unit/outbox/removed-nodes.test.ts': [
          'are kept while the node exists, also inside a subflow and with dashes in its id',
        ],
      },
    },
    {
      what: 'unfinished items are continued',
      file: 'lib/outbox/queue.ts',
      changes: [['        else if (item) lane.hand.push(item);\n', '']],
      shownBy: {
        'unit/texting/record.test.ts': [
          "continue after a deploy, ${journal ? 'with' : 'without'} the journal",
        ],
      },
    },
    {
      what: 'a process reads its waits when it starts',
      file: 'lib/outbox/queue.ts',
      changes: [['    for (const lane of this.lanes) lane.hasMore ||= isAny;\n', '']],
      shownBy: {
        'unit/consent/waits-endure.test.ts': [
          'after restarts, by their original start, without an extra poll',
        ],
      },
    },
    {
      what: 'all unanswered last polls are retried',
      file: 'lib/consent/pace.ts',
      changes: [
        [
          'if (now >= last) return now + intervalAt(pace, pace.giveUpAfter);',
          'if (now >= last) return Infinity;',
        ],
      ],
      shownBy: {
        'unit/consent/waits-endure.test.ts': [
          'all end in the interval after the service answers again, however many pages of them there are',
        ],
      },
    },
  ],
  11: [
    {
      what: 'an answer ends at 5 MB',
      file: 'lib/service/transport.ts',
      changes: [['if (this.size <= answerLimit &&', 'if (this.size <= 100 * answerLimit &&']],
      shownBy: {
        'unit/service/hostile.test.ts': [
          'that never stops answering is cut off after 5 MB, and the connection is closed',
        ],
      },
    },
    {
      what: 'an answer ends with the time limit',
      file: 'lib/service/transport.ts',
      changes: [['Math.min(timeout, longestTimer)', 'longestTimer']],
      shownBy: {
        'unit/service/faults.test.ts': ['an answer that trickles in past the time limit is cut off'],
      },
    },
    {
      what: 'a pause lasts an hour at most',
      file: 'lib/service/retry.ts',
      changes: [
        ['Math.min(ms, hour)', 'ms'],
        ['if (course.limitedFor + ms <= hour)', 'if (ms > 0)'],
      ],
      shownBy: {
        'unit/service/retry.test.ts': [
          'pauses as long as the service asks, up to an hour, and backs off if it does not say',
        ],
      },
    },
  ],
  12: [
    {
      what: 'nobody is asked again too early',
      file: 'nodes/request-consent/runtime.ts',
      changes: [
        [
          "const rules = { every: tools.plain.number('every') * hour, limit: tools.plain.number('limit') };",
          'const rules = { every: 0 * hour, limit: 0 };',
        ],
      ],
      shownBy: { 'node-red/examples/texting.test.ts': ['2: pressed every six hours for a week'] },
      needsBuild: true,
    },
    {
      what: 'nobody is texted or asked who is on the do-not-text list',
      file: 'lib/guards/do-not-text.ts',
      changes: [
        ['    if (by) throw refusalBy(by);\n', ''],
        ['      throw refusalBy(ended);\n', '      return () => undefined;\n'],
      ],
      shownBy: {
        'unit/guards/do-not-text.test.ts': [
          'blocks texts and consent requests, one by one, in a list, as a resend and in a dry run',
        ],
      },
    },
    {
      what: 'a list that cannot be read blocks everybody',
      file: 'lib/guards/do-not-text.ts',
      changes: [["return 'unreadable list';", 'return undefined;']],
      shownBy: { 'unit/guards/do-not-text.test.ts': ['blocks everybody when it is unknown who was on it'] },
    },
    {
      what: 'an entry that cannot be read blocks its number',
      file: 'lib/guards/do-not-text.ts',
      changes: [["? 'unreadable' : undefined", '? undefined : undefined']],
      shownBy: {
        'unit/guards/do-not-text.test.ts': [
          'blocks only numbers whose entry cannot be read, until they are blocked again or unblocked',
        ],
      },
    },
    {
      what: 'a block in one store of the list is copied to the others',
      file: 'lib/guards/do-not-text.ts',
      changes: [['if (blocked) await Promise.all(this.parts.map((part) => part.add(blocked)));', '']],
      shownBy: {
        'unit/guards/do-not-text.test.ts': [
          'includes people blocked by a process with only one of the stores, and keeps them when that one leaves',
        ],
      },
    },
    {
      what: 'nobody is texted before the stores of the list have each other’s entries',
      file: 'lib/guards/do-not-text.ts',
      changes: [['    await this.complete();\n', '']],
      shownBy: { 'unit/guards/do-not-text.test.ts': ['lets nobody be texted until it is complete'] },
    },
    {
      what: 'nobody is texted outside the hours',
      file: 'lib/guards/text-hours.ts',
      changes: [
        ['openingAfter(Math.max(date, clock.now()))', 'date > 0 ? openingAfter(date) : undefined'],
        ['    item.add({ permit });\n', ''],
      ],
      shownBy: {
        'unit/guards/text-hours.test.ts': [
          'fail a text outside them, and say when it may be sent',
          'hold a text until they start, spread over a quarter of an hour, even over a restart',
        ],
      },
    },
    {
      what: 'a scheduled text is moved into the hours',
      file: 'lib/guards/text-hours.ts',
      changes: [['item.movedTo = notBefore;', 'item.movedTo = undefined;']],
      shownBy: {
        'unit/guards/text-hours.test.ts': [
          'move the delivery date of a scheduled text at the service, and the payload says so',
        ],
      },
    },
    {
      what: 'a block is answered when requests in flight have finished',
      file: 'lib/guards/do-not-text.ts',
      changes: [['    while (this.attempts.has(phone)) await wokenBy(this.attemptEnds.add);\n', '']],
      shownBy: { 'unit/guards/do-not-text.test.ts': ['answers when that has finished'] },
    },
    {
      what: 'a block applies to the other processes, too',
      file: 'lib/guards/do-not-text.ts',
      changes: [
        [
          'await Promise.all([this.noteBlock(phone), store.peers?.tellOthers(command, Infinity)]);',
          'await this.noteBlock(phone);',
        ],
      ],
      shownBy: {
        'unit/guards/processes.test.ts': ['answer when that request has finished, and start no further one'],
      },
    },
    {
      what: 'a wait for somebody on the list ends',
      file: 'lib/consent/consent.ts',
      changes: [
        [
          'if (this.mayBeBlocked(wait, item, isLast) && (await this.isBlocked(wait.subject)))',
          'if (this.mayBeBlocked(wait, item, isLast) && wait.advisor === undefined)',
        ],
      ],
      shownBy: {
        'unit/guards/do-not-text.test.ts': [
          'ends waits for people who were added while their node was gone, at their next poll',
        ],
      },
    },
  ],
  13: [
    {
      what: 'a modified record is not decrypted',
      file: 'lib/state/sealing.ts',
      changes: [['    decipher.final();\n    return plain;', '    return plain;']],
      shownBy: {
        'unit/auth/data-key.test.ts': ['decrypts nothing in which any bit was flipped'],
      },
    },
    {
      what: 'only its owner can read a key file',
      file: 'lib/auth/data-key.ts',
      changes: [['mode: 0o600,', 'mode: 0o644,']],
      shownBy: {
        'unit/auth/data-key.test.ts': [
          'without a secret is in a file that only its owner can read, with a warning',
        ],
      },
    },
    {
      what: 'of several processes that make a key at once, the first one counts',
      file: 'lib/auth/data-key.ts',
      changes: [
        ['if (!isFirst || !isLinked(next, path)) renameSync(next, path);', 'renameSync(next, path);'],
      ],
      shownBy: {
        'unit/auth/data-key.test.ts': ['is the same for processes that make it at the same moment'],
      },
    },
  ],
  14: [
    {
      what: 'the simulator listens on the loopback address',
      file: 'simulator/index.ts',
      changes: [["const defaultHost = '127.0.0.1';", "const defaultHost = '0.0.0.0';"]],
      shownBy: {
        'unit/security/bind.test.ts': ['answers on no address of this machine except loopback'],
      },
    },
    {
      what: 'a foreign host name that resolves to localhost is rejected',
      file: 'simulator/guard.ts',
      changes: [
        [
          'return hostname === undefined || !isLoopback(hostname);',
          "return hostname === undefined && isLoopback('');",
        ],
      ],
      shownBy: {
        'unit/simulator/control.test.ts': [
          "rejects foreign hosts and origins on page and control, but not on the contract's endpoints",
        ],
      },
    },
    {
      what: 'no simulator runs for another service',
      file: 'nodes/environment/environment.ts',
      changes: [
        [
          "const options = this.service === 'simulator' ? await this.simulated() : this.configured();",
          "const options = this.service === 'production' ? this.configured() : await this.simulated();",
        ],
      ],
      shownBy: { 'unit/auth/environment.test.ts': ['never starts the simulator for another service'] },
    },
  ],
  15: [
    {
      what: 'what was accepted for one service is not carried out at another',
      file: 'lib/outbox/queue.ts',
      changes: [["    if (record.space !== space) return 'moved';\n", '']],
      shownBy: {
        'unit/texting/record.test.ts': ['are not sent when the node gets another environment'],
        'unit/security/switched.test.ts': ['says so while that is not filled in, and cancels when it is'],
      },
    },
    {
      what: 'a text that went for consent at one service is not sent to another',
      file: 'lib/runtime/item-node.ts',
      changes: [['        if (!isLocal && leftOtherService(', '        if (isLocal && leftOtherService(']],
      shownBy: {
        'unit/security/switched.test.ts': [
          'texts nobody who has consented on the simulator alone: a text that comes back from there is cancelled',
        ],
      },
    },
    {
      what: 'what is waited for at one service is not looked up at another',
      file: 'lib/outbox/queue.ts',
      changes: [['    if (home !== this.home) this.track(this.moveHome(home));\n', '']],
      shownBy: {
        'unit/security/switched.test.ts': ['says so while that is not filled in, and cancels when it is'],
      },
    },
    {
      what: 'sandbox and production are separate, even at one address',
      file: 'nodes/environment/environment.ts',
      changes: [['`${this.id}/${this.service}/${new URL', '`${this.id}/${new URL']],
      shownBy: {
        'unit/security/switched.test.ts': [
          'from ${from} to ${to} takes nothing along: everything is cancelled, and a warning counts it',
        ],
      },
    },
    {
      what: 'a status says nothing of another service',
      file: 'lib/runtime/flow-node.ts',
      changes: [['  if ((shownFor.get(node.id) ?? space) !== space) node.status({});\n', '']],
      shownBy: {
        'unit/security/switched.test.ts': [
          'from ${from} to ${to} takes nothing along: everything is cancelled, and a warning counts it',
        ],
      },
    },
    {
      what: 'an authorization for one service does not replace that for another',
      file: 'lib/auth/vault.ts',
      changes: [
        [
          'await this.save(this.ownName(connection, grant.advisor), entry);',
          'await this.save(entryName(grant.environment, grant.advisor), entry);',
        ],
      ],
      shownBy: {
        'unit/auth/vault.test.ts': [
          'keeps the authorization that flows use, and uses each with its service, also after a restart',
        ],
      },
    },
    {
      what: 'an authorization belongs to its service',
      file: 'lib/auth/vault.ts',
      changes: [['  (service === undefined || service === connection.service) &&\n', '']],
      shownBy: {
        'unit/auth/tokens.test.ts': [
          'are not carried over from sandbox to production, though the addresses are the same',
        ],
      },
    },
  ],
  16: [
    {
      what: 'an endpoint that was given up is left alone for a while',
      file: 'lib/auth/token-endpoint.ts',
      changes: [
        ['access.pause(Math.max(backoff(access.givenUp - 1, 1), trouble.retryAfter));', 'access.pause(0);'],
      ],
      shownBy: {
        'unit/auth/token-endpoint.test.ts': ['is asked a handful of times for 100 messages over 100 seconds'],
      },
    },
    {
      what: 'one attempt is in flight while an endpoint is failing',
      file: 'lib/auth/token-endpoint.ts',
      changes: [['(retries.retried + retries.limited + this.givenUp > 0 ? 1 : mostAtOnce);', 'mostAtOnce;']],
      shownBy: {
        'unit/auth/token-endpoint.test.ts': ['is asked for one advisor until it answers, then for all'],
      },
    },
    {
      what: 'an endpoint is left alone for as long as it asks',
      file: 'lib/auth/token-endpoint.ts',
      changes: [['access.pause(Math.max(decision.ms, trouble.retryAfter));', 'access.pause(decision.ms);']],
      shownBy: { 'unit/auth/token-endpoint.test.ts': ['is left alone as long as a 503 asks'] },
    },
    {
      what: 'a refreshed token that is rejected too is not refreshed for every message',
      file: 'lib/service/client.ts',
      changes: [['last.count >= mostFutile', 'last.count >= Infinity']],
      shownBy: {
        'unit/auth/token-endpoint.test.ts': [
          'is asked a handful of times for 1,000 messages that fail because of a wrong key (${grant})',
        ],
      },
    },
  ],
  17: [
    {
      what: 'only a page of the queue is in memory',
      file: 'lib/outbox/queue.ts',
      changes: [['      lane.hand.length < mostAtHand;', '      lane.hand.length < Infinity;']],
      shownBy: {
        'unit/outbox/bounds.test.ts': ['is in the store: memory has one page of it, however long it is'],
      },
    },
    {
      what: 'messages that cannot be saved are rejected beyond 32 MB',
      file: 'lib/outbox/queue.ts',
      changes: [
        ['    if (this.store.engine.commits.unwritten > mostUnwritten) throw new QueueFull();\n', ''],
      ],
      shownBy: {
        'unit/texting/record-faults.test.ts': [
          'rejects new messages when too many wait for space, and says so',
        ],
      },
    },
  ],
  18: [
    {
      what: 'what only our simulator does is not assumed',
      file: 'lib/service/wire.ts',
      changes: [['const path = wirePath(parts.path, prefixes);', 'const { path } = parts;']],
      shownBy: {
        'unit/profiles/flows.test.ts': [
          'the canonical flow: a person with an unknown number is asked, waited for, and texted after accepting',
        ],
      },
    },
  ],
  19: [
    {
      what: 'a text is delayed if the service ignores its consent',
      file: 'nodes/send-text/runtime.ts',
      changes: [
        [
          "if (state !== 'accepted' && state !== undefined) return outcome;",
          'if (Boolean(state) || true) return outcome;',
        ],
      ],
      shownBy: {
        'unit/texting/not-believed.test.ts': [
          'is retried after 30 seconds, 2 and 10 minutes, then fails, in a loop that checks with ${mode}',
        ],
      },
    },
    {
      what: 'a message in a loop is delayed',
      file: 'lib/runtime/item-node.ts',
      changes: [['returns.count <= mostReturns', 'returns.count <= Infinity']],
      shownBy: {
        'unit/texting/spinning.test.ts': [
          'is delayed after 20 times until a minute has passed, with one warning that names the node',
        ],
      },
    },
  ],
  20: [
    {
      what: 'nobody is texted while an empty store is unconfirmed',
      file: 'lib/guards/do-not-text.ts',
      changes: [
        ['    if (!shared.dryRun && environment.isStoreLost) await environment.mayText(item.signal);\n', ''],
      ],
      shownBy: {
        'unit/guards/lost-store.test.ts': [
          'says so, texts and asks nobody, and keeps new messages until somebody confirms the empty store',
        ],
      },
    },
    {
      what: 'a file that is deleted while it is open is noticed',
      file: 'lib/state/embedded.ts',
      changes: [['found !== undefined && found.ino === this.inode', 'true']],
      shownBy: {
        'unit/guards/lost-store.test.ts': [
          'notices the deletion within seconds, sends nothing, and resumes when it is restored',
        ],
      },
    },
    {
      what: 'a store whose do-not-text list has moved away counts as a new one',
      file: 'nodes/environment/environment.ts',
      changes: [['      if (withList) await this.inFile.recognition.leave(file);\n', '']],
      shownBy: {
        'unit/state/moving-instances.test.ts': [
          'text nobody when they go back, each time, until somebody confirms that the list stays behind',
        ],
      },
    },
    {
      what: 'a new store takes over from those of all other places, unless their list is shared',
      file: 'lib/state/recognition.ts',
      changes: [['isAlone ? Object.values(this.remembered()) : []', '[]']],
      shownBy: {
        'unit/state/moving-instances.test.ts': [
          'leave the do-not-text list to one beside them (${store}), and text nobody from one in their place',
        ],
      },
    },
  ],
  21: [
    {
      what: 'a store is not started while the clock is wrong by years',
      file: 'lib/state/embedded.ts',
      changes: [['this.isClockWrong && !existsSync(this.path)', 'this.isClosed']],
      shownBy: {
        'unit/guards/wrong-clock.test.ts': [
          'accepts nothing before the clock is right and says so; then nobody is texted or asked twice',
        ],
      },
    },
    {
      what: 'a timer for a time of day sleeps a minute at most',
      file: 'lib/service/clock.ts',
      changes: [['Math.min(left, longestSleep)', 'left']],
      shownBy: {
        'unit/outbox/resuming.test.ts': ['leave within a minute once they are due, and not before'],
      },
    },
  ],
  22: [
    {
      what: 'the item whose turn it was at a crash is not tried again',
      file: 'lib/outbox/queue.ts',
      changes: [
        ["    if (!isWait && this.careful.suspects.includes(this.nameOf(item))) return 'crashes';\n", ''],
      ],
      shownBy: {
        'unit/outbox/poisoned.test.ts': ['does so four times, then leaves, and all others are sent'],
      },
    },
    {
      what: 'each process that takes over the work of another counts the crashes before it',
      file: 'lib/state/postgres-leases.ts',
      changes: [['starts = starts + 1', 'starts = 1']],
      shownBy: {
        'unit/outbox/poisoned.test.ts': [
          'does so four times in PostgreSQL too, whichever process takes it over',
        ],
      },
    },
  ],
  23: [
    {
      what: 'control characters are escaped',
      file: 'lib/visible.ts',
      changes: [['    kept.includes(sign)\n', '    kept.includes(sign) || sign !== ""\n']],
      shownBy: {
        'node-red/security/foreign-words.test.ts': [
          'is escaped where it is invisible, and otherwise unchanged',
          'is one line in the log, in a status and in a sentence of every language',
        ],
      },
    },
    {
      what: 'each line of the log is one line',
      file: 'lib/runtime/log.ts',
      changes: [['=> visible(`[advisor-texting]', '=> String(`[advisor-texting]']],
      shownBy: {
        'node-red/security/foreign-words.test.ts': [
          'is one line in the log, in a status and in a sentence of every language',
        ],
      },
    },
    {
      what: 'each status is one line',
      file: 'lib/runtime/status.ts',
      changes: [["visible([...Array.from(marks, (mark) => words.say(mark)), text].join(' '))", 'text']],
      shownBy: {
        'node-red/security/foreign-words.test.ts': [
          'is one line in the log, in a status and in a sentence of every language',
        ],
      },
    },
    {
      what: 'values in a sentence are escaped',
      file: 'lib/service/errors.ts',
      changes: [["typeof said === 'string' ? visible(said) : said", 'said']],
      shownBy: {
        'node-red/security/foreign-words.test.ts': [
          'is one line in the log, in a status and in a sentence of every language',
        ],
      },
    },
    {
      what: 'numbers are recognized as people write them',
      file: 'lib/runtime/log.ts',
      changes: [['writtenNumbers.reduce(', 'writtenNumbers.slice(0, 1).reduce(']],
      shownBy: {
        'node-red/security/foreign-words.test.ts': [
          'shows four digits of a number in the log, however it is written',
        ],
      },
    },
    {
      what: 'a reader gets failures without what the service said',
      file: 'nodes/environment/sidebar-data.ts',
      changes: [['mayWrite ? all : all.map(maskedFailure)', 'all']],
      shownBy: {
        'node-red/security/foreign-words.test.ts': [
          'are shown to users who may write; a reader sees code and time',
        ],
      },
      needsBuild: true,
    },
    {
      what: 'a rejection quotes the service only to users who may write',
      file: 'nodes/environment/reply.ts',
      changes: [['if (mayWrite) return { code', 'if (mayWrite || code) return { code']],
      shownBy: {
        'node-red/security/foreign-words.test.ts': [
          'are shown to users who may write; a reader sees code and time',
        ],
      },
      needsBuild: true,
    },
  ],
  24: [
    {
      what: 'items carry the type of their node',
      file: 'lib/outbox/queue.ts',
      changes: [["    if (record.type !== type) return 'retyped';\n", '']],
      shownBy: {
        'unit/texting/retyped.test.ts': [
          'from ${from} to ${to}: cancels what was waiting and does nothing else with it',
        ],
      },
    },
  ],
  25: [
    {
      what: 'pages end',
      file: 'lib/address-book/paging.ts',
      changes: [['const mostPages = 10_000;', 'const mostPages = 100_000;']],
      shownBy: {
        'unit/address-book/endless.test.ts': ['are read up to 10,000 if there is no total'],
      },
    },
    {
      what: 'a list of contacts to save keeps only its own of all contacts',
      file: 'nodes/contact/matches.ts',
      changes: [['        if (!wanted.has(value)) continue;\n', '']],
      shownBy: {
        'unit/address-book/endless.test.ts': [
          'needs no memory for all the others, for a list of contacts to save',
        ],
      },
    },
  ],
  26: [
    {
      what: 'a message has a limit of levels',
      file: 'lib/outbox/storable-message.ts',
      changes: [['      if (depth > mostLevels) throw new TooDeep();\n', '']],
      shownBy: {
        'unit/texting/odd-messages.test.ts': [
          'is rejected with the limit, and completes, where another part of it has too many levels or throws',
        ],
      },
    },
    {
      what: 'a part that throws is named',
      file: 'lib/runtime/item-node.ts',
      changes: [['problemOf(unready(unread ?? thrown))', 'problemOf(unready(thrown))']],
      shownBy: {
        'unit/texting/odd-messages.test.ts': ['is rejected by ${type} where msg.${property} is ${what}'],
      },
    },
  ],
};
