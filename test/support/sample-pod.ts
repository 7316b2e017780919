import { readFileSync } from 'node:fs';
import { expect, vi } from 'vitest';
import { freePort } from './free-port.js';
import { at, readManifest, textAt } from './manifest.js';
import { TestApplication } from './test-application.js';
import type { TestDatabase } from './test-database.js';
import { waitFor } from './wait-for.js';

const SAMPLE = '02-kubernetes-health';
export const PROBES = [
  'startupProbe',
  'livenessProbe',
  'readinessProbe',
] as const;
type ProbeName = (typeof PROBES)[number];

/** The Deployment of the sample. */
export const manifest = readManifest(
  readFileSync(`sample/${SAMPLE}/kubernetes/deployment.yaml`, 'utf8'),
);
export const podSpec = at(manifest, 'spec', 'template', 'spec');
export const container = at(podSpec, 'containers', 0);

/** The application of the sample, asked as the kubelet of its manifest asks it. */
export class Pod {
  private constructor(
    readonly application: TestApplication,
    private readonly address: string,
  ) {}

  static async start(source: TestDatabase, target: TestDatabase): Promise<Pod> {
    const port = String(await freePort());
    return new Pod(
      TestApplication.startSample(SAMPLE, {
        SOURCE_URL: source.url,
        TARGET_URL: target.url,
        PORT: port,
      }),
      `http://127.0.0.1:${port}`,
    );
  }

  /** HTTP codes of the probes, in the order of {@link PROBES}; `null` while nobody listens. */
  async codes(): Promise<readonly number[] | null> {
    const answers = await Promise.all(PROBES.map((probe) => this.ask(probe)));
    const codes = answers.flatMap((answer) => answer?.code ?? []);
    return codes.length === PROBES.length ? codes : null;
  }

  async ask(
    probe: ProbeName,
  ): Promise<{ readonly code: number; readonly body: string } | null> {
    const path = textAt(container, probe, 'httpGet', 'path');
    try {
      const response = await fetch(`${this.address}${path}`);
      return { code: response.status, body: await response.text() };
    } catch {
      return null;
    }
  }

  async post(path: string): Promise<number> {
    const answer = await fetch(`${this.address}${path}`, { method: 'POST' });
    return answer.status;
  }

  /** Waits until the probes answer these codes. */
  async answers(codes: readonly number[]): Promise<void> {
    let seen: readonly number[] | null = null;
    await waitFor(
      async () => {
        seen = await this.codes();
        return JSON.stringify(seen) === JSON.stringify(codes);
      },
      { timeout: 30_000, message: codes.join() },
    ).catch((error: unknown) => {
      throw new Error(
        `It answers ${String(seen)}:\n${this.application.output}`,
        { cause: error },
      );
    });
  }

  /** Waits until readiness says this of its pipeline. */
  async reports(part: object): Promise<void> {
    await vi.waitFor(
      async () => {
        const { body } = (await this.ask('readinessProbe')) ?? { body: '{}' };
        const answer: unknown = JSON.parse(body);
        expect(answer).toMatchObject({
          details: { replicant: { pipelines: { default: part } } },
        });
      },
      { timeout: 30_000, interval: 50 },
    );
  }
}
