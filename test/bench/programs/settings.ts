import type { ClientConfig } from 'pg';

/** Reads a setting that the bench has to give. */
export function setting(name: string): string {
  const value = process.env[name];
  if (value === undefined) throw new Error(`Set ${name}.`);
  return value;
}

/** Where the source is. */
export function sourceConnection(): ClientConfig {
  const certificate = setting('CERTIFICATE');
  return {
    connectionString: setting('SOURCE_URL'),
    ssl: certificate === '' ? false : { ca: certificate },
  };
}

/** Sends a message to the bench, and resolves when it is on its way. */
export function tell(message: object): Promise<void> {
  return new Promise((resolve, reject) => {
    if (process.send === undefined) reject(new Error('Nobody listens.'));
    else process.send(message, undefined, {}, () => resolve());
  });
}

/** Ends this process when the bench has died. */
export function endWithBench(): void {
  process.once('disconnect', () => process.exit(1));
}
