/** A setting that a process is given by its environment. */
export function setting(name: 'DATABASE_URL' | 'BILLING_PORT'): string {
  const value = process.env[name];
  if (value === undefined) throw new Error(`Set ${name}.`);
  return value;
}
