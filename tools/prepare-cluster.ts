import { platform } from 'node:os';
import type { TestProject } from 'vitest/node';
import { Cluster } from '../test/support/cluster.js';

/** Runs initdb once: the servers of the spec files begin with copies of what it makes. */
export async function setup(
  project: TestProject,
): Promise<(() => Promise<void>) | undefined> {
  // There is no `cp` there.
  if (platform() === 'win32') return undefined;
  const cluster = await Cluster.create();
  await cluster.initialise();
  const { dataFolder, password } = cluster;
  project.provide('clusterTemplate', { dataFolder, password });
  return () => cluster.remove();
}
