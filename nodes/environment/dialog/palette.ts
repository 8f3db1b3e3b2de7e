interface AttributeHooks {
  attrHooks: Record<string, { get(element: Element): string | null }>;
}

/** A string of each node that the palette has. */
const searchWords = 'searchWords';

/**
 * The palette searches a node's label, which it reads as this attribute with jQuery, and its type: words that people
 * search by (wait, phone, message) are in neither. They are only read, never shown.
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
