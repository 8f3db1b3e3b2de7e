import { address, PassExpired } from './control';
import { second } from '../../lib/durations';

export type LiveState = 'connecting' | 'live' | 'lost' | 'expired';

const retryAfter = 2 * second;

/**
 * Reads now, after every change in the simulator, and when the result is called; one read at a time. A change during
 * a read leads to exactly one more. EventSource reconnects on its own except after an HTTP error: that and a failed
 * read are retried here.
 */
export const follow = (read: () => Promise<void>, report: (connection: LiveState) => void): (() => void) => {
  let events: EventSource | undefined;
  let reading = false;
  let stale = false;
  let retry: number | undefined;

  const update = async (): Promise<void> => {
    stale = true;
    if (reading) return;
    reading = true;
    try {
      while (stale) {
        stale = false;
        await read();
      }
      if (events?.readyState === EventSource.OPEN) report('live');
    } catch (error) {
      if (error instanceof PassExpired) {
        events?.close();
        report('expired');
      } else {
        lost();
      }
    } finally {
      reading = false;
    }
  };

  const connect = (): void => {
    events = new EventSource(address('events'));
    events.onopen = () => void update();
    events.onmessage = () => void update();
    events.onerror = lost;
  };

  const lost = (): void => {
    report('lost');
    retry ??= window.setTimeout(() => {
      retry = undefined;
      if (events?.readyState === EventSource.CLOSED) connect();
      void update();
    }, retryAfter);
  };

  connect();
  void update();
  return () => void update();
};
