import library, { AxiosHeaders, type AxiosResponse, type InternalAxiosRequestConfig } from 'axios';
import { axiosOver } from '../../lib/service/transport';
import { figureOf, interleaved, ratioOf, type Row } from '../figures';
import type { Part } from '../part';

const base = 'https://service.example/v1';
const text = { method: 'POST', url: '/text/messaging/messages' } as const;
const body = { phone: '+12025550123', text: 'Your review is ready.' };
const secrets = { authorization: 'Bearer token', 'x-api-key': 'key' };
const answer = { data: { state: 'answered' }, status: 200, statusText: '', headers: new AxiosHeaders() };

/** Answers immediately: this measures the path through axios. */
const adapter = async (config: InternalAxiosRequestConfig): Promise<AxiosResponse> => ({ ...answer, config });

/** What axios costs as we use it, and what the parts that we leave out would cost. */
export const axios: Part = {
  name: 'axios',
  title: 'the way of a request through axios',
  async run({ rounds, scaled }) {
    const count = scaled(100_000);
    const ours = axiosOver(adapter as never, base);
    const defaults = library.create({ baseURL: base, timeout: 30_000, adapter });
    const micros = async (request: () => Promise<unknown>): Promise<number> => {
      const before = process.cpuUsage();
      for (let at = 0; at < count; at++) await request();
      const { user, system } = process.cpuUsage(before);
      return (user + system) / count;
    };
    const sides = {
      ours: () =>
        micros(() => ours.request({ ...text, data: JSON.stringify(body), token: 'token', apiKey: 'key' })),
      defaults: () => micros(() => defaults.request({ ...text, data: body, headers: secrets })),
      uri: () => micros(async () => ours.getUri({ ...text, params: { page: 1 } })),
    };
    await interleaved(1, sides);
    const { ours: usual = [], ...others } = await interleaved(rounds, sides);
    const row = (measurement: string, side: 'defaults' | 'uri'): Row => ({
      measurement,
      unit: 'µs',
      ours: figureOf(others[side] ?? []),
      against: { what: 'axios as we use it', figure: figureOf(usual) },
      ratio: ratioOf(others[side] ?? [], usual),
    });
    return [
      row('axios with its default headers, transforms and status check: CPU per request', 'defaults'),
      row('`getUri` of axios alone: CPU per request', 'uri'),
    ];
  },
};
