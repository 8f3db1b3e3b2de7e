/** Single values by name, or the name of a parameter that was given twice: none may be repeated (RFC 6749, section 3.1). */
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
