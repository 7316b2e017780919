/** The value, which must be there. */
export function present<T>(value: T | null | undefined): T {
  if (value === null || value === undefined)
    throw new Error('A value that must be there is not.');
  return value;
}
