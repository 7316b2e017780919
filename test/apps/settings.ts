import type { INestApplicationContext } from '@nestjs/common';

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

/** Closes the application when the spec says so, and ends when the spec has died. */
export function livesForSpec(application: INestApplicationContext): void {
  process.on('message', (word) => {
    if (word !== 'close') return;
    void application.close().then(() => say('closed'));
  });
  // Neither listener keeps this process alive.
  process.once('disconnect', () => process.exit(1));
  process.channel?.unref();
}
