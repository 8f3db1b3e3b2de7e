import type { EndpointName } from '../../lib/service/endpoints';
import * as contacts from './contacts';
import * as content from './content';
import type { Endpoint } from './endpoint';
import * as groups from './groups';
import * as texting from './texting';

const all = { ...texting, ...contacts, ...groups, ...content };

/** Every endpoint (contract, *Endpoints*). One that the client's table has and these files do not have does not compile. */
export const endpoints: Readonly<Record<EndpointName, Endpoint>> = all;

/** One that the client's table does not have does not compile. */
export const endpointNames: readonly EndpointName[] = Object.keys(all) as (keyof typeof all)[];
