/** Reads a setting that the spec has to give. */
export function setting(name: string): string {
  const value = process.env[name];
  if (value === undefined) throw new Error(`Set ${name}.`);
  return value;
}

/** Tells the spec that something has happened. */
export function say(word: string): void {
  process.send?.(word);
}
