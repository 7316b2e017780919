/** What the application is told by its environment. */
export interface Settings {
  readonly sourceUrl: string;
  readonly targetUrl: string;
  readonly slotName: string;
  /** How the rows that exist already are copied. */
  readonly snapshot: 'initial' | 'incremental';
  readonly port: number;
}

export function readSettings(env: NodeJS.ProcessEnv): Settings {
  return {
    sourceUrl: required(env, 'SOURCE_URL'),
    targetUrl: required(env, 'TARGET_URL'),
    slotName: required(env, 'SLOT_NAME'),
    snapshot: env['SNAPSHOT'] === 'incremental' ? 'incremental' : 'initial',
    port: Number(required(env, 'PORT')),
  };
}

function required(env: NodeJS.ProcessEnv, name: string): string {
  const value = env[name];
  if (value === undefined) throw new Error(`Set ${name}.`);
  return value;
}
