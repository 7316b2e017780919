import type { ResolvedOptions } from '../../options/resolve-options.js';
import type { CaptureSet } from './capture-set.js';
import { NamedTables } from './named-tables.js';
import { PublicationSet } from './publication-set.js';
import { ReplicationSets } from './replication-sets.js';

/** What these options say is captured. */
export function captureSetOf(options: ResolvedOptions): CaptureSet {
  const { decoder } = options;
  switch (decoder.name) {
    case 'pgoutput':
      return new PublicationSet(decoder.publications, options);
    case 'wal2json':
      return new NamedTables(decoder);
    case 'pglogical':
      return new ReplicationSets(decoder.replicationSets);
  }
}
