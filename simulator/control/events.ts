import type { ServerResponse } from 'node:http';
import { second } from '../../lib/durations';

/** Milliseconds within which changes are reported as one. */
const gathering = 100;
/** Milliseconds: some proxies close a stream on which nothing is sent. */
const heartbeat = 25 * second;

/** Notifies open pages that something has changed; they then read the state. */
export class ChangeStream {
  private readonly listeners = new Set<ServerResponse>();
  private pending: NodeJS.Timeout | undefined;
  private beat: NodeJS.Timeout | undefined;

  open(response: ServerResponse): void {
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
    response.write('retry: 1000\n\n');
    this.listeners.add(response);
    this.beat ??= setInterval(() => {
      this.broadcast(': still here\n\n');
    }, heartbeat).unref();
    response.once('close', () => {
      this.listeners.delete(response);
    });
  }

  changed(): void {
    if (this.listeners.size === 0 || this.pending !== undefined) return;
    this.pending = setTimeout(() => {
      this.pending = undefined;
      this.broadcast('data: changed\n\n');
    }, gathering).unref();
  }

  close(): void {
    clearTimeout(this.pending);
    clearInterval(this.beat);
    for (const response of this.listeners) response.end();
    this.listeners.clear();
  }

  private broadcast(text: string): void {
    for (const response of this.listeners) response.write(text);
  }
}
