/** What the Deployment tells the application. */
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

/** How long a stop waits for the running delivery; `terminationGracePeriodSeconds` of the Deployment is longer. */
export const DRAIN_TIMEOUT_MS = 20_000;

function required(env: NodeJS.ProcessEnv, name: string): string {
  const value = env[name];
  if (value === undefined) throw new Error(`Set ${name}.`);
  return value;
}
