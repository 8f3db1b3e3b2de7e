/** Single values by name, or the name of one that was given twice: OAuth allows none to be repeated. */
export const readParameters = (
  text: string,
): { readonly values: Readonly<Record<string, string>> } | { readonly repeated: string } => {
  const values: Record<string, string> = Object.create(null) as Record<string, string>;
  for (const [name, value] of new URLSearchParams(text)) {
    if (name in values) return { repeated: name };
    values[name] = value;
  }
  return { values };
};
