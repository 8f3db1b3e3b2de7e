import { minute } from '../durations';
import { wayTo, type ClientOptions, type requestDefaults } from '../service/client';
import { elapsedBy } from '../service/clock';
import { declarations, type EndpointName } from '../service/endpoints';
import type { Prefixes } from '../service/prefixes';
import { isUnanswered, type Query, type ReadAnswer, type ReadKind } from './query-names';
import { Retries } from '../service/retry';
import { assess, planEndpoint, type EndpointRequest } from '../service/wire';

export interface ReadSettings extends Pick<
  ClientOptions,
  'baseUrl' | 'apiKey' | 'clock' | 'random' | keyof typeof requestDefaults
> {
  readonly prefixes: Prefixes;
  readonly proxy: string;
  /** Milliseconds for pauses and retries, in all. */
  readonly patience?: number;
}

const mostAtOnce = 4;

/** Nobody has this number: it is set aside for fiction. */
export const nobodysPhone = '+12025550100';

/** A prefix that no service has: its answer shows how the service answers paths that do not exist. */
const nowhere = 'no-such-prefix';

/** Refusals name the path that was asked for, and number what they refuse. */
const comparablePage = (text: string, { core, text: texting }: Prefixes): string =>
  text
    .slice(0, 10_000)
    .replaceAll(core, '')
    .replaceAll(texting, '')
    .replaceAll(/[\da-f-]{6,}|\d+/gi, '');

/** Whether two answers cannot be told apart. */
export const alike = (one: ReadAnswer, other: ReadAnswer): boolean =>
  one.kind === other.kind && one.status === other.status && one.page === other.page;

export interface ReadCredentials {
  readonly token?: string;
  readonly apiKey?: string;
  readonly prefixes?: Prefixes;
}

/** Reads within the environment's limits, and retries until `patience` is used up or a 429 asks for a longer pause. */
export class ServiceReader {
  private readonly way: ReturnType<typeof wayTo>;
  /** Milliseconds that failures and pauses have taken. */
  private lost = 0;
  private leftAlone: ReadAnswer | undefined;

  constructor(private readonly settings: ReadSettings) {
    const maxConcurrent = Math.min(settings.maxConcurrent ?? mostAtOnce, mostAtOnce);
    this.way = wayTo({ ...settings, maxConcurrent });
  }

  /** Without `token`, neither a token nor the key is handed over. Names in `query` are those of the wire. */
  async read(
    name: EndpointName,
    credentials: ReadCredentials,
    query: Query = {},
    request: EndpointRequest = {},
  ): Promise<ReadAnswer> {
    const { clock, random, budget, limits, rules } = this.way;
    const { patience = minute } = this.settings;
    const course = new Retries(clock, random, budget);
    for (;;) {
      await limits.enter({ lane: '', priority: 'normal', front: false, signal: undefined });
      try {
        if (this.leftAlone) return this.leftAlone;
        const began = elapsedBy(clock);
        const { reply, happened } = await this.attempt(name, credentials, query, request);
        if (!isUnanswered(reply)) return reply;
        const now = elapsedBy(clock);
        this.lost += now - began;
        const decision = course.after('read', happened, rules);
        const ms = 'ms' in decision ? decision.ms : 0;
        const more = Math.max(0, ms - Math.max(0, limits.pausedUntil - clock.now()));
        const isWaitedFor = 'ms' in decision && this.lost + more <= patience;
        if (happened.what === 'limited' && !isWaitedFor) this.leftAlone = reply;
        if (!isWaitedFor) return reply;
        this.lost += more;
        limits.pause(ms);
      } finally {
        limits.leave();
      }
    }
  }

  private async attempt(
    name: EndpointName,
    { token, apiKey = this.settings.apiKey, prefixes = this.settings.prefixes }: ReadCredentials,
    query: Query,
    request: EndpointRequest,
  ) {
    const plan = planEndpoint(name, { prefixes });
    if (plan.method !== 'GET') throw new Error('a rehearsal only reads');
    const { outgoing, id } = plan.wire(request);
    const result = await this.way.transport.send({
      ...outgoing,
      params: query,
      ...(token !== undefined && { token, apiKey }),
    });
    const secrets = token === undefined ? [] : [token, this.settings.apiKey];
    const assessed = assess(plan, id, result, this.way.clock, secrets);
    const { happened, data, failure, reason } = assessed;
    const status = result.state === 'answered' ? result.status : 0;
    const hasProblemBody = failure?.hasProblemBody === true;
    const kind = (): ReadKind => {
      if (happened.what === 'done') return 'fine';
      if (status === 0) return 'silent';
      // A search finds nothing with 200: a 404 is about the path, even if a gateway sends it.
      if ([404, 405, 410].includes(status) && (!hasProblemBody || declarations[name].search !== undefined))
        return 'nothing';
      if (status === 429 || status >= 500) return 'trouble';
      if (hasProblemBody) return 'problem';
      return status >= 400 ? 'refused' : 'other';
    };
    const detail = failure?.problem.detail ?? '';
    const page = result.state === 'answered' && status >= 400 ? (result.text ?? '') : '';
    const reply: ReadAnswer = {
      kind: kind(),
      status,
      detail,
      reason: reason || `HTTP ${String(status)}`,
      hasProblemBody,
      page: comparablePage(hasProblemBody ? detail : page, prefixes),
      ...(happened.what === 'done' && { data }),
    };
    return { reply, happened };
  }

  readNowhere(part: keyof Prefixes, credentials: ReadCredentials): Promise<ReadAnswer> {
    const under = { ...credentials, prefixes: { ...this.settings.prefixes, [part]: nowhere } };
    return part === 'text'
      ? this.read('getConsent', under, { phone: nobodysPhone })
      : this.read('searchContacts', under);
  }

  /**
   * Asks for the consent of a number that nobody has. The service answers with 404, as it does for a path that does not
   * exist. But it answers an invalid number with 400 (contract, *Limits*), which distinguishes the two; if not, its
   * answer to a path that certainly does not exist does.
   */
  async readConsent(credentials: ReadCredentials): Promise<ReadAnswer> {
    const reply = await this.read('getConsent', credentials, { phone: nobodysPhone });
    if (reply.kind !== 'problem' || reply.status !== 404) return reply;
    const malformed = await this.read('getConsent', credentials, { phone: '0' });
    if (malformed.status !== 404) return reply;
    const control = await this.readNowhere('text', credentials);
    return isUnanswered(control) || alike(reply, control) ? { ...reply, kind: 'nothing' } : reply;
  }

  close(): Promise<void> {
    return this.way.transport.destroy();
  }
}
