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
    'Please do not open a public issue. Use _Report a vulnerability_ under _Security_ in the [repository](https://github.com/advisor-texting/node-red), and say which version, what you did and what happened. Leave out real numbers, texts and tokens; a [support bundle](docs/operations.md#support-bundle) has none. The latest release is the one that is mended.',
    '',
    '## Threats',
    '',
    'What must not happen, where the sources keep it away, and the tests (below `test/`) that fail without that. `npm run proof -- threats` takes each defence out of a copy of the sources and sees its tests fail. How things are stored and who may do what is in [docs/security.md](docs/security.md). `npm run docs` writes this page.',
    '',
    '| # | threat | kept away in | shown by | not shown yet |',
    '| --- | --- | --- | --- | --- |',
    ...rows,
    '',
    '## What it is made of',
    '',
    'Every version of every dependency is fixed by the lock file. `npm sbom --omit=dev --sbom-format=cyclonedx` prints a bill of materials (CycloneDX) of what is installed with the package; a test holds its licences to MIT, ISC, BSD and Apache 2.0, and `engines` to the Node.js that the dependencies ask for. Releases are published with provenance.',
    '',
  ].join('\n');
};
