/** Titles of tests, whole or in part, as they are written, by their file. */
export type Titles = Readonly<Record<string, readonly string[]>>;

export interface Threat {
  readonly threat: string;
  readonly shownBy: Titles;
  /** What is promised and still missing. */
  readonly open?: string;
}

/** What must not happen, and the tests that would notice it. */
export const threats: Readonly<Record<number, Threat>> = {
  1: {
    threat: 'a forged or replayed callback',
    shownBy: {
      'unit/auth/authorization.test.ts': [
        'without a state',
        'with an unknown state',
        'after ten minutes',
        "with the code of another advisor's request",
        'when finished for another environment, which leaves the request valid',
        'accepts a callback once',
        'accepts only one of two simultaneous callbacks',
        'never uses a state or verifier twice',
        'can only be finished there, and an attempt elsewhere does no harm',
      ],
      'node-red/auth/real-routes.test.ts': [
        'bind an authorization to the browser that started it, by a cookie of our own page',
      ],
      'editor/environment.test.ts': [
        'lets only this browser finish what was started in it, even against a page of another site',
      ],
    },
  },
  2: {
    threat: 'an unguarded admin route, or one that reveals too much',
    shownBy: {
      'node-red/security/routes.test.ts': [
        'each require one of our permissions, except those that are open to all',
        'pass where the permission allows, and nowhere else',
        'resolve no variable for ${user} that the deployed environment does not refer to there (${environment})${inAllForms}',
        'reveal none to ${user} either, who may use them${inAllForms}',
      ],
      'node-red/auth/real-routes.test.ts': [
        'accept only JSON, so that no page of another site can post here',
      ],
      'unit/auth/form.test.ts': [
        'reaches no server that only the form names for users who may not deploy, except the one that is ${what}',
        'tests nothing before the first deploy for users who may not deploy, and says so',
      ],
    },
  },
  3: {
    threat: 'parameters smuggled into the callback',
    shownBy: {
      'unit/auth/authorization.test.ts': [
        'when ${name} occurs twice, which leaves the request valid',
        'for any other query',
        'ignores unknown parameters, even those that name another advisor or environment',
      ],
      'node-red/auth/real-routes.test.ts': [
        'accept a callback once, on either root, and no smuggled parameters',
      ],
    },
  },
  4: {
    threat: 'a redirect to somewhere else',
    shownBy: {
      'node-red/auth/real-routes.test.ts': [
        'use the configured redirect address, whatever host the request names',
      ],
    },
  },
  5: {
    threat: 'script in a page or dialog',
    shownBy: {
      'node-red/auth/real-routes.test.ts': ['answer the callback with static pages and a strict policy'],
      'editor/environment.test.ts': ['shows names as text'],
      'editor/forms/pickers.ts': ['shows names as text'],
      'editor/security/browser.test.ts': [
        'are text in a picker (${id})',
        'are text where a list says why it is empty',
        'are text in the dialog of the environment',
        'are not on the page that the authorization redirects to',
      ],
      'editor/simulator/page-lists.test.ts': ['treat hostile names and texts as text, everywhere'],
    },
  },
  6: {
    threat: 'a refresh race, a rotated token lost',
    shownBy: {
      'unit/auth/tokens.test.ts': [
        'are requested once for 1,000 callers when one expires',
        'are used only after the rotated refresh token is on disk',
        'are read from the store once more when the service answers 400',
        'use it, warn, and save it once there is room (the store ${manner})',
        'use it, warn, and save it once there is room (the store ${manner})',
      ],
      'unit/auth/vault.test.ts': [
        'does not use a refresh token before the intent to use it is saved',
        'before the request: the authorization continues',
        'after the answer, before it is saved: the token at hand is used until it expires, and only then the old one',
        'after the answer is saved: the next process continues with the rotated token',
      ],
      'unit/auth/oidc.test.ts': ['rotates ten times, with a restart in between'],
    },
  },
  7: {
    threat: 'secrets or texts in logs, errors, statuses, exports or URLs',
    shownBy: {
      'node-red/security/canary.test.ts': [
        'are nowhere in the log, whatever its level, and numbers show four digits at most',
        'are in no status, and in nothing else that the editor receives',
        'as secrets are in no message',
        "as texts and numbers are in no error, except in the service's words",
        'are sent to no browser: secrets and texts never, people only where they are looked up',
        'cannot be read on disk, neither after a kill nor at the end',
      ],
      'editor/environment.test.ts': ['gives the browser no secret'],
    },
  },
  8: {
    threat: 'a token sent to another host',
    shownBy: {
      'unit/service/hostile.test.ts': ['that redirects elsewhere never makes the token arrive there'],
      'unit/service/transport.test.ts': ['follows no redirect', 'requires TLS, except on localhost'],
      'unit/auth/tokens.test.ts': ['are never sent to a server other than the one that issued them'],
      'node-red/auth/real-routes.test.ts': ['send no stored secret to an address that only the form names'],
    },
  },
  9: {
    threat: 'a text sent twice',
    shownBy: {
      'unit/security/ledger.test.ts': ['repeatSends ${repeatSends}: no text twice'],
      'unit/service/faults.test.ts': [
        '${kind}: a send is not retried with ${repeatSends}, and its outcome is unknown',
      ],
      'node-red/kills.test.ts': [
        '${often} in a list of ${texts}: each outcome is emitted, no text is sent twice, none is missing, and metrics count none twice',
      ],
      'node-red/hand-over.test.ts': [
        'a text after a wait is sent once, even if the process is killed as the service accepts it',
      ],
      'unit/state/power-cut.test.ts': [
        'leaves everything that was saved, and nothing half-written (${images} images)',
      ],
      'unit/guards/once.test.ts': ['is received once, however often and whenever the node is stopped'],
      'unit/state/postgres.test.ts': [
        'notice that the database has lost commits, and leave in doubt what was accepted before',
      ],
      // Run by `npm run proof -- instances`.
      'proof/instances.ts': ['waits through ${faultCount} faults: nothing lost, no text twice'],
    },
  },
  10: {
    threat: 'a message lost',
    shownBy: {
      'unit/security/ledger.test.ts': [
        'repeatSends ${repeatSends}: no text twice, no recipient without an outcome',
      ],
      'unit/state/power-cut.test.ts': [
        'leaves everything that was saved, and nothing half-written (${images} images)',
      ],
      'node-red/kills.test.ts': ['each ends once it may, and none is lost'],
      'unit/outbox/removed-nodes.test.ts': [
        'are kept while the node exists, also inside a subflow and with dashes in its id',
        'are kept for its nodes, even if it is disabled',
      ],
      'unit/consent/waits-endure.test.ts': ['after restarts, by their original start, without an extra poll'],
    },
  },
  11: {
    threat: 'a hostile or broken server',
    shownBy: {
      'unit/service/hostile.test.ts': [
        'that never stops answering is cut off after 5 MB, and the connection is closed',
        'that sends endless headers, a bad status line or an early upgrade breaks only that call',
        'always produces an outcome, whatever it answers',
      ],
      'unit/service/faults.test.ts': ['an answer that trickles in past the time limit is cut off'],
      'unit/service/retry.test.ts': [
        'pauses as long as the service asks, up to an hour, and backs off if it does not say',
      ],
    },
  },
  12: {
    threat: 'a consent loop that harasses; a text to somebody who opted out, or at night',
    shownBy: {
      'node-red/examples/texting.test.ts': [
        '2: pressed every six hours for a week, it asks a silent person three times and no more',
      ],
      'unit/consent/request-history.test.ts': [
        'stops at the limit of unanswered requests, until an acceptance is seen',
      ],
      'unit/guards/do-not-text.test.ts': [
        'blocks texts and consent requests, one by one, in a list, as a resend and in a dry run',
        'blocks everybody when it is unknown who was on it',
        'blocks only numbers whose entry cannot be read, until they are blocked again or unblocked',
        'includes people blocked by a process with only one of the stores, and keeps them when that one leaves',
        'lets nobody be texted until it is complete',
        'is respected, whenever somebody is added while lists are being processed',
      ],
      'unit/guards/text-hours.test.ts': [
        'are respected: whenever texts come, nobody receives one outside them',
      ],
    },
  },
  13: {
    threat: 'stolen or damaged state',
    shownBy: {
      'unit/auth/vault.test.ts': ['leaves nothing readable on disk'],
      'unit/auth/data-key.test.ts': [
        'decrypts nothing in which any bit was flipped',
        'is the same for processes that make it at the same moment',
        'is shared by two processes on one user directory',
        'without a secret is in a file that only its owner can read, with a warning',
      ],
      'unit/state/damage.test.ts': [
        'without a valid header is set aside and replaced by a new one',
        'costs only the records on its damaged pages',
        'is not assumed after failed starts',
      ],
      'unit/state/owner.test.ts': ['leaves the files to nobody else, and no socket behind'],
      'unit/state/faults.test.ts': [
        'reports damaged records once, and takes them for missing',
        'never reports an unwritten record as written, says why, and resumes when there is room',
      ],
    },
  },
  14: {
    threat: 'the simulator reachable from outside',
    shownBy: {
      'unit/security/bind.test.ts': ['answers on no address of this machine except loopback'],
      'unit/auth/environment.test.ts': ['never starts the simulator for another service'],
      'unit/simulator/control.test.ts': [
        "rejects foreign hosts and origins on page and control, but not on the contract's endpoints",
      ],
    },
  },
  15: {
    threat: 'a test text that reaches a real person',
    shownBy: {
      'node-red/hand-over.test.ts': [
        'a message accepted for one service reaches no other that the environment is pointed to',
      ],
      'unit/texting/record.test.ts': ['are not sent when the node gets another environment'],
      'unit/security/switched.test.ts': [
        'from ${from} to ${to} takes nothing along: everything is cancelled, and a warning counts it',
        'says so while that is not filled in, and cancels when it is',
        'texts nobody who has consented on the simulator alone: a text that comes back from there is cancelled',
      ],
    },
  },
  16: {
    threat: 'a storm on the login service',
    shownBy: {
      'unit/auth/token-endpoint.test.ts': [
        'loses none of 60 messages over three 503 answers',
        'is asked a handful of times for 100 messages over 100 seconds',
        'is asked a handful of times for 1,000 messages that fail because of a wrong key (${grant})',
        'is given up after an hour in total when it is rate limited permanently',
        'has its rejection of the client remembered (${what}, ${grant}) until that is corrected',
      ],
    },
  },
  17: {
    threat: 'memory exhausted by a long outage',
    shownBy: {
      'unit/outbox/bounds.test.ts': ['is in the store: memory has one page of it, however long it is'],
      'unit/texting/record-faults.test.ts': [
        'rejects new messages when too many wait for space, and says so',
      ],
    },
    open: 'The test queues three thousand texts; `npm run bench -- million` measures a million.',
  },
  18: {
    threat: 'an error of ours that our simulator shares',
    shownBy: {
      'unit/profiles/flows.test.ts': [
        'the canonical flow: a person with an unknown number is asked, waited for, and texted after accepting',
        'a contact is created, read, changed without losing fields, found and deleted',
      ],
      'unit/profiles/independent.test.ts': [
        'the canonical flow: a contact that appears late is asked, waited for, and texted after accepting',
        'the address book: a contact is created, changed without losing fields, grouped, found and deleted',
      ],
      'node-red/profiles/real.test.ts': [
        'is authorized, asks an unknown number, waits over a restart, and texts it once it has accepted',
      ],
      'unit/simulator/foreign-clients.test.ts': ['authorizes with PKCE, and knows who signed in'],
    },
  },
  19: {
    threat: 'a flow that spins',
    shownBy: {
      'unit/texting/not-believed.test.ts': [
        'is retried after 30 seconds, 2 and 10 minutes, then fails, in a loop that checks with ${mode}',
        'continues where it was after a restart',
        'ends the canonical loop as rejected, after four attempts',
      ],
      'unit/texting/spinning.test.ts': [
        'is delayed after 20 times until a minute has passed, with one warning that names the node',
        'is delayed when ${type} ${JSON.stringify(config)} rejects it as invalid',
        'is delayed even if it was stored and read again on the way',
        'is accepted when its node closes, and continued by the next',
      ],
      'node-red/spinning.test.ts': [
        'holds a text whose consent the service ignores, over kill -9, and asks nobody twice',
        'delays a message that its failure leads back to its node, and loses it in no kill',
      ],
    },
  },
  20: {
    threat: 'the store lost, or replaced by an empty one',
    shownBy: {
      'unit/guards/lost-store.test.ts': [
        'says so, texts and asks nobody, and keeps new messages until somebody confirms the empty store',
        'notices the deletion within seconds, sends nothing, and resumes when it is restored',
        'is noticed after a deploy, too, when the directory was deleted while in use',
        'is noticed while it runs and after a restart, by all instances, and one confirms it for all',
        'is noticed by all instances where somebody empties the tables while they run',
        'is noticed where another instance makes the tables again, and both read what either writes',
      ],
      'unit/state/moving-instances.test.ts': [
        'text nobody when they go back, each time, until somebody confirms that the list stays behind',
        'leave the do-not-text list to one beside them (${store}), and text nobody from one in their place',
      ],
    },
  },
  21: {
    threat: 'a clock that is wrong by decades, or jumps while texts are held',
    shownBy: {
      'unit/guards/wrong-clock.test.ts': [
        'accepts nothing before the clock is right and says so; then nobody is texted or asked twice',
      ],
      'unit/state/faults.test.ts': [
        'does not start while the clock is implausible, says so, and resumes when it is set',
        'uses the saved time if the clock is wrong at a start, and adopts the clock once when it is set',
      ],
      'unit/outbox/resuming.test.ts': ['leave within a minute once they are due, and not before'],
      'unit/service/clock.test.ts': ['fires within a minute when the clock jumps past its time'],
    },
  },
  22: {
    threat: 'a poisoned item: work that crashes the process at each start',
    shownBy: {
      'unit/outbox/poisoned.test.ts': [
        'does so four times, then leaves, and all others are sent',
        'does so four times in PostgreSQL too, whichever process takes it over',
        'is not suspected without a crash: nothing is written for it',
      ],
    },
  },
  23: {
    threat: 'forged lines in a log; the service’s words shown to a user with `read` alone',
    shownBy: {
      'node-red/security/foreign-words.test.ts': [
        'is escaped where it is invisible, and otherwise unchanged',
        'is one line in the log, in a status and in a sentence of every language',
        'shows four digits of a number in the log, however it is written',
        'is left out of what a reader sees, and our own words stay',
        'forge no line in the log, and show no number in it',
        'are one line in each status and each of our messages',
        'are shown to users who may write; a reader sees code and time',
      ],
      'editor/security/browser.test.ts': ['are text in a picker (${id})'],
    },
  },
  24: {
    threat: 'work accepted by one type of node, carried out by another',
    shownBy: {
      'unit/texting/retyped.test.ts': [
        'from ${from} to ${to}: cancels what was waiting and does nothing else with it',
      ],
    },
  },
  25: {
    threat: 'a search whose pages never end',
    shownBy: {
      'unit/address-book/endless.test.ts': [
        'are read up to ten times the first total, and earlier records are emitted',
        'are read up to 10,000 if there is no total',
        'fail a search for a group by name, before anything is written',
        'fail a lookup of the editor',
        'needs no memory for all the others, for a group by its name',
        'needs no memory for all the others, for a list of contacts to save',
      ],
    },
  },
  26: {
    threat: 'a message that no flow should create: too large, too deep, or one that throws when it is read',
    shownBy: {
      'unit/texting/odd-messages.test.ts': [
        'is rejected with the limit when it is too large to be saved',
        'is rejected when a list in it has billions of empty entries',
        'emits one failure when msg.${property} throws',
        'is rejected by ${type} where msg.${property} is ${what}',
        'is rejected with the limit, and completes, where another part of it has too many levels or throws',
        'is validated as msg.resend, with ${what}',
      ],
    },
  },
};
