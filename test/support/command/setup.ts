import { check } from '../../../command/check';
import { systemClock } from '../../../lib/service/clock';

/** Every check of a service, by the command's name for it. */
export const serviceChecks = [
  'reachability',
  'token',
  'apiKey',
  'scopes',
  'prefixes',
  'names',
  'dates',
  'groupIds',
  'phones',
] as const;

/** A command's output and exit code; in this process, which saves starting another. */
export const listenTo = async (
  command: () => Promise<number>,
): Promise<{ code: number; out: string; err: string }> => {
  const { stdout, stderr } = process;
  const [toOut, toErr] = [stdout.write.bind(stdout), stderr.write.bind(stderr)];
  let [out, err] = ['', ''];
  stdout.write = (text: string) => Boolean((out += text));
  stderr.write = (text: string) => Boolean((err += text));
  try {
    const code = await command();
    return { code, out, err };
  } finally {
    stdout.write = toOut;
    stderr.write = toErr;
  }
};

/** Retries happen immediately. */
export const runCheck = (args: readonly string[], variables: Record<string, string> = {}) =>
  listenTo(() => check(args, { LANG: 'en', ...variables }, { clock: systemClock, random: () => 0 }));
