import { relative, sep } from 'node:path';
import { at } from '../build/folders.mjs';
import { importsOf, sourcesIn } from '../imports.mjs';

/** The rows of the picture: at the bottom folders that use no others, at the top those that use the most. */
const rows = [
  [['lib/service', 'the contract']],
  [
    ['lib/state', 'the store'],
    ['simulator', 'the service, to try out'],
  ],
  [
    ['lib/auth', 'authorizations, tokens'],
    ['lib/outbox', 'accepted to emitted'],
  ],
  [
    ['lib/consent', 'waits, requests'],
    ['lib/guards', 'what may stop a text'],
  ],
  [['lib/runtime', 'what all nodes share']],
  [
    ['lib/texting', 'recipients'],
    ['lib/address-book', 'searches, changes'],
    ['lib/editor', 'forms'],
  ],
  [
    ['nodes', 'one folder each'],
    ['command', 'advisor-texting'],
  ],
];

const box = { width: 190, height: 54 };
const gap = { x: 60, y: 64 };
const width = 3 * box.width + 4 * gap.x;
const height = rows.length * (box.height + gap.y) + gap.y;

const offsets = [0, -60, 40, -110, 60, 0, -40];

const placed = rows.flatMap((row, level) => {
  const length = row.length * box.width + (row.length - 1) * gap.x;
  return row.map(([folder, about], place) => ({
    folder,
    about,
    level,
    // The boxes are not in columns, or an arrow over several levels would run behind the boxes between.
    x: (width - length) / 2 + place * (box.width + gap.x) + offsets[level],
    y: height - (level + 1) * (box.height + gap.y),
  }));
});

const folderOf = (path) => {
  const inside = relative(at(), path).split(sep).join('/');
  return placed.find(({ folder }) => inside.startsWith(`${folder}/`) || inside === folder)?.folder;
};

/** The folders that the files of a folder import from, types included. */
const usedBy = (folder) => {
  const used = new Set();
  for (const file of sourcesIn(folder)) for (const path of importsOf(file)) used.add(folderOf(path));
  used.delete(folder);
  used.delete(undefined);
  return used;
};

/** Drops arrows that follow from others. */
const direct = (uses) => {
  const reach = (folder, seen = new Set()) => {
    for (const next of uses.get(folder))
      if (!seen.has(next)) {
        seen.add(next);
        reach(next, seen);
      }
    return seen;
  };
  return [...uses].flatMap(([from, used]) =>
    [...used]
      .filter((to) => ![...used].some((other) => other !== to && reach(other).has(to)))
      .map((to) => [from, to]),
  );
};

const arrow = ([from, to]) => {
  const [user, used] = [from, to].map((name) => placed.find(({ folder }) => folder === name));
  const [x1, x2] = [user.x + box.width / 2, used.x + box.width / 2];
  const isBeside = user.level === used.level;
  const y1 = isBeside ? user.y + box.height / 2 : user.y + box.height;
  const y2 = isBeside ? used.y + box.height / 2 : used.y - 7;
  const [start, end] = isBeside
    ? x1 < x2
      ? [user.x + box.width, used.x - 7]
      : [user.x, used.x + box.width + 7]
    : [x1, x2];
  return `<path d="M${start} ${y1} C${start} ${(y1 + y2) / 2} ${end} ${(y1 + y2) / 2} ${end} ${y2}"/>`;
};

const drawn = ({ folder, about, x, y }) =>
  `<g><rect x="${x}" y="${y}" width="${box.width}" height="${box.height}" rx="8"/>
<text x="${x + box.width / 2}" y="${y + 23}" class="name">${folder}</text>
<text x="${x + box.width / 2}" y="${y + 42}">${about}</text></g>`;

/** The picture of the folders and their imports; arrows that follow from others are left out. */
export const modulesPicture = () => {
  const uses = new Map(placed.map(({ folder }) => [folder, usedBy(folder)]));
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="The folders of the code, and which uses which">
<style>
rect { fill: #fff; stroke: #5b7f95; stroke-width: 1.5 }
path { fill: none; stroke: #5b7f95; stroke-width: 1.5; marker-end: url(#tip) }
text { font: 13px sans-serif; text-anchor: middle; fill: #444 }
.name { font: bold 15px monospace; fill: #111 }
</style>
<defs><marker id="tip" viewBox="0 0 8 8" refX="2" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0 L8 4 L0 8 z" style="fill:#5b7f95;stroke:none;marker-end:none"/></marker></defs>
<rect x="0" y="0" width="${width}" height="${height}" style="fill:#f7f9fa;stroke:none"/>
${direct(uses).map(arrow).join('\n')}
${placed.map(drawn).join('\n')}
</svg>
`;
};
