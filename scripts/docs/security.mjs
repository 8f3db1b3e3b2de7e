/** SECURITY.md: how to report, and the threats that are defended against, from the list that the tests use. */
export const securityPage = ({ threats, defences }) => {
  const rows = Object.entries(threats).map(([number, { threat, shownBy, open }]) => {
    const tests = Object.keys(shownBy)
      .map((file) => `\`${file}\``)
      .join(', ');
    const places = new Set((defences[number] ?? []).map(({ file }) => `\`${file}\``));
    return `| ${number} | ${threat} | ${[...places].join(', ') || '—'} | ${tests} | ${open ?? ''} |`;
  });
  return [
    '# Security',
    '',
    '## Reporting a vulnerability',
    '',
    'Please do not open a public issue. Use _Report a vulnerability_ under _Security_ in the [repository](https://github.com/advisor-texting/node-red), and say which version, what you did and what happened. Leave out real numbers, texts and tokens; a [support bundle](docs/operations.md#support-bundle) has none. Fixes go into the latest release.',
    '',
    '## Threats',
    '',
    'The table lists what must not happen, where the code prevents it, and the tests (under `test/`) that fail without that defence: `npm run proof -- threats` removes each defence from a copy of the sources and runs its tests. [docs/security.md](docs/security.md) says what is stored where, and who may do what.',
    '',
    '| # | threat | prevented in | shown by | not shown yet |',
    '| --- | --- | --- | --- | --- |',
    ...rows,
    '',
    '## Dependencies',
    '',
    'The lock file pins every dependency. `npm sbom --omit=dev --sbom-format=cyclonedx` prints a bill of materials for everything that is installed with the package. A test allows only the licences MIT, ISC, BSD and Apache 2.0, and checks `engines` against what the dependencies need. Releases are published with provenance. `npm run docs` writes this page.',
    '',
  ].join('\n');
};
