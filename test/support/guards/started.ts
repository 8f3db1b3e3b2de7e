import { inspect } from 'node:util';
import type { Red } from '../../../lib/runtime/red';
import { health } from '../../../nodes/environment/sidebar-data';
import { RunningEnvironment } from '../../../nodes/environment/environment';
import { runningOf } from '../../../nodes/environment/running';
import { servicesOf } from '../../../nodes/environment/services';
import * as eventsRuntime from '../../../nodes/events/runtime';
import { spec as eventsSpec } from '../../../nodes/events/spec';
import type { Simulator } from '../../../simulator';
import { callbackUri, FileSettings } from '../auth/setup';
import { until } from '../until';
import { Flow, type Arrived } from '../flow';
import { block, folders, request, send } from './setup';

const events = { id: 'events', type: 'advisor-events' };

/** An environment as a separate Node-RED has it: what it remembers is in the settings of its user directory. */
export class Started {
  readonly logged: string[] = [];
  readonly environment: RunningEnvironment;
  flow!: Flow;
  private readonly RED: Red;

  private constructor(simulator: Simulator, userDir: string, values: object) {
    const note = (line: string): number => this.logged.push(line);
    this.RED = {
      settings: Object.assign(new FileSettings(userDir, { credentialSecret: 'a' }), {
        available: () => true,
      }),
      log: { info: note, warn: note, error: note },
    } as unknown as Red;
    const { baseUrl, authUrl, tokenUrl, credentials } = simulator;
    this.environment = new RunningEnvironment(
      servicesOf(this.RED),
      'env1',
      {
        name: 'Office',
        service: 'sandbox',
        grant: 'client_credentials',
        scopes: ['text.messaging.write', 'text.messaging.read'],
        redirectUri: callbackUri,
        baseUrl,
        authUrl,
        tokenUrl,
        ...credentials,
        ...values,
      },
      () => undefined,
    );
    runningOf(this.RED).add(this.environment);
  }

  static prepare(simulator: Simulator, userDir: string, values: object = {}): Started {
    return new Started(simulator, userDir, values);
  }

  static async on(simulator: Simulator, userDir: string, values: object = {}): Promise<Started> {
    const started = Started.prepare(simulator, userDir, values);
    await started.environment.store();
    await started.load();
    return started;
  }

  /** Starts the nodes; `sending` are settings of the send node. */
  async load(sending: object = {}): Promise<void> {
    this.flow = await Flow.load({
      folders: [...folders, { spec: eventsSpec, runtime: eventsRuntime }],
      environment: this.environment,
      nodes: [{ ...send, ...sending }, request, block, events],
    });
  }

  get health(): number {
    let status = 0;
    const response = {
      status(said: number) {
        status = said;
        return response;
      },
      set: () => response,
      json: () => undefined,
    };
    health(this.RED, response as never);
    return status;
  }

  /** The output of the nodes that text people. */
  outcomes(): Arrived[] {
    return this.flow.arrivals.all.filter(({ from }) => from === 'send' || from === 'request');
  }

  storeEvents(): unknown[] {
    return this.flow.arrivals.all.flatMap(({ msg }) =>
      msg['topic'] === 'store' ? [(msg.payload as { ok: boolean }).ok] : [],
    );
  }

  async until(isSo: () => boolean): Promise<void> {
    await until(isSo).catch((fault: Error) => {
      const { environment, health, logged } = this;
      const seen = { trouble: environment.trouble, health, outcomes: this.outcomes(), logged };
      throw new Error(`${fault.message} ${inspect(seen, { depth: 4 })}`);
    });
  }

  async stop(): Promise<void> {
    await Flow.unload();
    await this.environment.close();
  }
}
