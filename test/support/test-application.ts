import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import { ApplicationProcess } from './application-process.js';

/** A Nest application of `test/apps` that does not outlive the test. */
export class TestApplication extends ApplicationProcess {
  /** Starts `test/apps/<name>.ts`. */
  static start(
    name: string,
    env: Readonly<Record<string, string>>,
  ): TestApplication {
    return TestApplication.#spawn(`test/apps/${name}.js`, env);
  }

  /** Starts `sample/<name>/application/main.ts`. */
  static startSample(
    name: string,
    env: Readonly<Record<string, string>>,
  ): TestApplication {
    return TestApplication.#spawn(`sample/${name}/application/main.js`, env);
  }

  static #spawn(
    file: string,
    env: Readonly<Record<string, string>>,
  ): TestApplication {
    const entry = fileURLToPath(
      new URL(`../../.build/apps/${file}`, import.meta.url),
    );
    const application = new TestApplication(entry, env);
    onTestFinished(() => application.kill());
    return application;
  }
}
