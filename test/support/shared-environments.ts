import type { Red } from '../../lib/runtime/red';
import { systemClock, type Clock } from '../../lib/service/clock';
import { RunningEnvironment } from '../../nodes/environment/environment';
import { servicesOf } from '../../nodes/environment/services';
import type { Simulator } from '../../simulator';
import { callbackUri, FileSettings, freshFolder } from './auth/setup';
import type { Postgres } from './postgres';

/** An environment that several Node-RED instances keep in one PostgreSQL, each as a separate process has it. */
export class SharedEnvironments {
  readonly open: RunningEnvironment[] = [];
  private group = 0;

  constructor(
    private readonly server: Postgres,
    private readonly simulator: Simulator,
    private readonly clock: Clock = systemClock,
  ) {}

  /** What was started before belongs to another environment. */
  next(): void {
    this.group += 1;
  }

  /** A different address makes a separate process here. */
  start(
    name: string,
    credentialSecret: string | false = 'a',
    changes: object = {},
    /** The environments of the same Node-RED, the id of this one among them, its user directory and its log. */
    {
      id = `env${this.group}`,
      running = new Set<RunningEnvironment>(),
      userDir = freshFolder(),
      warn = (_: string): void => undefined,
    } = {},
  ): RunningEnvironment {
    const settings = new FileSettings(userDir, { credentialSecret });
    const quiet = (): void => undefined;
    const services = servicesOf({
      settings: Object.assign(settings, { available: () => true }),
      log: { info: quiet, warn, error: quiet },
    } as unknown as Red);
    const { baseUrl, authUrl, tokenUrl, credentials } = this.simulator;
    const values = {
      service: 'sandbox',
      baseUrl,
      authUrl,
      tokenUrl,
      redirectUri: callbackUri,
      ...credentials,
      store: 'postgres',
      storeUrl: `${this.server.url()}&application_name=${name}`,
      ...changes,
    };
    const environment = new RunningEnvironment(
      { ...services, clock: this.clock },
      id,
      values,
      () => undefined,
      running,
    );
    running.add(environment);
    this.open.push(environment);
    return environment;
  }

  async closeAll(): Promise<void> {
    await Promise.all(this.open.splice(0).map((environment) => environment.close()));
  }
}
