/** What the application is told by its environment. */
export interface Settings {
  readonly sourceUrl: string;
  readonly targetUrl: string;
  readonly port: number;
}

export function readSettings(env: NodeJS.ProcessEnv): Settings {
  return {
    sourceUrl: required(env, 'SOURCE_URL'),
    targetUrl: required(env, 'TARGET_URL'),
    port: Number(required(env, 'PORT')),
  };
}

function required(env: NodeJS.ProcessEnv, name: string): string {
  const value = env[name];
  if (value === undefined) throw new Error(`Set ${name}.`);
  return value;
}
