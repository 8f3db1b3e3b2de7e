import { systemClock, type Clock } from '../service/clock';
import type { RunningNode } from './red';

export type Fill = 'green' | 'yellow' | 'red' | 'blue' | 'grey';

export interface Look {
  readonly fill: Fill;
  readonly shape: 'dot' | 'ring';
  readonly text: string;
  /** Whose authorization it asks for: an advisor's, or with nothing anybody's. */
  readonly lacks?: string | undefined;
}

export const look = (fill: Fill, shape: Look['shape'], text: string): Look => ({ fill, shape, text });

export interface Status {
  /** What to show; it is put into words only when it is drawn, at most once a second. */
  show(look: () => Look): void;
  /** Takes away what asks for an authorization that there is by now. */
  clearIf(isAuthorized: (advisor: string) => boolean): void;
  close(): void;
}

const leastInterval = 1000;

export const createStatus = (
  node: Pick<RunningNode, 'status'>,
  prefix: () => string,
  clock: Clock = systemClock,
): Status => {
  let latest: (() => Look) | undefined;
  let lastDrawn = -Infinity;
  let lastText: string | undefined;
  let cancel: (() => void) | undefined;
  let lacking: string | undefined;

  const draw = (): void => {
    cancel = undefined;
    if (!latest) return;
    const { fill, shape, text, lacks } = latest();
    latest = undefined;
    lacking = lacks;
    lastDrawn = clock.now();
    const whole = prefix() + text;
    const key = `${fill} ${shape} ${whole}`;
    if (key === lastText) return;
    lastText = key;
    node.status({ fill, shape, text: whole });
  };

  return {
    show(look) {
      latest = look;
      if (cancel) return;
      const wait = lastDrawn + leastInterval - clock.now();
      if (wait <= 0) draw();
      else cancel = clock.after(Math.min(wait, leastInterval), draw);
    },
    clearIf(isAuthorized) {
      if (lacking === undefined || !isAuthorized(lacking)) return;
      lacking = undefined;
      lastText = undefined;
      node.status({});
    },
    close() {
      cancel?.();
      cancel = undefined;
      latest = undefined;
    },
  };
};
