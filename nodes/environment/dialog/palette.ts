interface AttributeHooks {
  attrHooks: Record<string, { get(element: Element): string | null }>;
}

/** The key of the search words of a node in the palette. */
const searchWords = 'searchWords';

/**
 * The palette searches a node's type, and its label, which it reads from this attribute with jQuery. Words that people
 * search for (wait, phone, message) are in neither, so they are added when the attribute is read; they are never shown.
 */
export const addSearchWords = (): void => {
  ($ as unknown as AttributeHooks).attrHooks['data-palette-label'] = {
    get(element) {
      const label = element.getAttribute('data-palette-label');
      const type = element.getAttribute('data-palette-type') ?? '';
      const words = type.startsWith('advisor-') ? RED.nodes.getType(type)?._(searchWords) : undefined;
      return words === undefined ? label : `${label ?? ''} ${words}`;
    },
  };
};

/** Pixels: the width that the palette gives a line of a label, and its height. */
const lineWidth = 82;
const lineHeight = 20;
/** Pixels that keep a word from touching the port. */
const besidePort = 10;

const fit = (element: HTMLElement): void => {
  const words = (element.getAttribute('data-palette-label') ?? '').split(' ');
  const widthOf = (text: string): number => RED.view.calculateTextWidth(text, 'red-ui-palette-label');
  const longest = Math.max(...words.map(widthOf));
  const isWide = longest >= lineWidth;
  // The palette breaks a label at a hyphen: "SMS -" and "Aktivität".
  if (!isWide && !words.some((word) => word.includes('-'))) return;
  const scale = isWide ? (lineWidth - besidePort) / longest : 1;
  const lines: string[] = [];
  for (const word of words) {
    const longer = `${lines.at(-1) ?? ''} ${word}`;
    if (lines.length > 0 && widthOf(longer) * scale < lineWidth) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  const label = $(element).find('.red-ui-palette-label').empty().css('font-size', '');
  // In pixels, from the label's own size: an em would be relative to the palette's size, which is larger.
  label.css('font-size', `${String(parseFloat(label.css('font-size')) * scale)}px`);
  for (const [at, line] of lines.entries())
    label.append(at > 0 ? $('<br>') : '', document.createTextNode(line));
  const height = 8 + lineHeight * lines.length;
  $(element).css('height', `${String(height)}px`);
  $(element)
    .find('.red-ui-palette-port')
    .css('top', `${String(height / 2 - 5)}px`);
};

/** The palette breaks a long word anywhere, or at its hyphen. Labels with such words are written smaller instead. */
export const keepWordsWhole = (): void => {
  const fitAll = (): void => {
    for (const element of document.querySelectorAll<HTMLElement>('[data-palette-type^="advisor-"]'))
      fit(element);
  };
  RED.events.on('registry:node-type-added', (type) => {
    if (String(type).startsWith('advisor-')) fitAll();
  });
};
