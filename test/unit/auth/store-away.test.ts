import { createServer } from 'node:http';
import express from 'express';
import should from 'should';
import { Authorizations } from '../../../lib/auth/authorization';
import { VaultAway } from '../../../lib/auth/vault';
import type { Red } from '../../../lib/runtime/red';
import { systemClock } from '../../../lib/service/clock';
import { connectionOf } from '../../../nodes/environment/config';
import { openRoutes } from '../../../nodes/environment/open-routes';
import type { Services } from '../../../nodes/environment/services';
import { listen } from '../../support/server';

const connection = connectionOf('env', {
  service: 'sandbox',
  baseUrl: 'https://a.example/v1',
  authUrl: 'https://a.example/auth',
  tokenUrl: 'https://a.example/token',
  redirectUri: 'https://b.example/advisor-texting/callback',
  clientId: 'client',
  clientSecret: 'secret',
});

describe('an authorization that returns while the store is unavailable', () => {
  let authorizations: Authorizations;
  const back = async (): Promise<URLSearchParams> => {
    const url = new URL(await authorizations.begin(connection, 'ann'));
    return new URLSearchParams({ code: 'c', state: url.searchParams.get('state') ?? '' });
  };
  const reason = { state: 'failed', why: 'storeAway' };

  beforeEach(() => {
    const answer = { accessToken: 'a', refreshToken: 'r', scopes: null, expiresIn: 3600 };
    authorizations = new Authorizations({
      clock: systemClock,
      vault: { authorized: () => Promise.reject(new VaultAway()) } as never,
      endpoints: { run: () => Promise.resolve({ outcome: 'issued', answer }) } as never,
    });
  });

  it('reports in the dialog that it could not be saved', async () => {
    await should(authorizations.finish(await back(), { browser: '' })).be.rejectedWith(VaultAway);
    should(authorizations.attempt('env', 'ann')).deepEqual(reason);
  });

  it('fails before the code is used, and can be tried again', async () => {
    const query = await back();
    authorizations.storeAway(query);
    should(authorizations.attempt('env', 'ann')).deepEqual(reason);
    should(authorizations.isPending(query.get('state') ?? '')).be.true();
    authorizations.storeAway(new URLSearchParams({ code: 'c', state: 'forged' }));
    should(authorizations.attempt('env', 'bob')).deepEqual({ state: 'none' });
  });

  it('reports in the dialog what the window says', async () => {
    const vault = { useNow: () => Promise.reject(new VaultAway()) };
    const { callback } = openRoutes({} as Red, { authorizations, vault } as unknown as Services);
    const server = createServer(express().get('/callback', callback));
    const port = await listen(server);
    const query = await back();
    const page = await fetch(`http://127.0.0.1:${String(port)}/callback?${query.toString()}`);
    server.close();
    should(page.status).equal(400);
    should(authorizations.attempt('env', 'ann')).deepEqual(reason);
  });
});
