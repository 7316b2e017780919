export { Checkpoint } from './decorators/checkpoint.decorator.js';
export { OnBatch } from './decorators/on-batch.decorator.js';
export {
  OnChange,
  type OnChangeOptions,
} from './decorators/on-change.decorator.js';
export {
  OnMessage,
  type OnMessageOptions,
} from './decorators/on-message.decorator.js';
export { OnSchemaChange } from './decorators/on-schema-change.decorator.js';
export { OnSessionIdentity } from './decorators/on-session-identity.decorator.js';
export { OnSlotOrigin } from './decorators/on-slot-origin.decorator.js';
export { OnSnapshotComplete } from './decorators/on-snapshot-complete.decorator.js';
export { OnSnapshot } from './decorators/on-snapshot.decorator.js';
export { OnTransaction } from './decorators/on-transaction.decorator.js';
export {
  ReplicantSink,
  type ReplicantSinkOptions,
} from './decorators/replicant-sink.decorator.js';
export { SnapshotProgress } from './decorators/snapshot-progress.decorator.js';
export { CheckpointIdentityError } from './engine/checkpoint/checkpoint-identity-error.js';
export { CheckpointMovedError } from './engine/checkpoint/checkpoint-moved-error.js';
export type {
  CheckpointQuery,
  CheckpointQueryResult,
} from './engine/checkpoint/checkpoint-query.js';
export {
  CheckpointTable,
  type AppliedTransaction,
  type CheckpointTableOptions,
} from './engine/checkpoint/checkpoint-table.js';
export type { BatchReason } from './engine/model/batch-reason.js';
export type {
  Change,
  Delete,
  Insert,
  OldRow,
  Row,
  Tables,
  Truncate,
  Update,
} from './engine/model/change.js';
export type {
  CheckpointContext,
  CheckpointHome,
  CheckpointKeeper,
  CheckpointReader,
  SnapshotProgressReader,
  StoredCheckpoint,
} from './engine/model/checkpoint.js';
export { ChangesError } from './engine/model/changes-error.js';
export { ConnectionFault } from './engine/model/connection-fault.js';
export type { Delivery } from './engine/model/delivery.js';
export { Halt, HaltError } from './engine/model/halt.js';
export type { HaltCode } from './engine/model/halts.js';
export { formatLsn, parseLsn, type Lsn } from './engine/model/lsn.js';
export type { Message, MessageContext } from './engine/model/message.js';
export type {
  Column,
  Relation,
  ReplicaIdentity,
} from './engine/model/relation.js';
export type {
  SchemaChange,
  SchemaChangeContext,
  SchemaChangeKind,
} from './engine/model/schema-change.js';
export type {
  SessionIdentity,
  SessionIdentityContext,
} from './engine/model/session-identity.js';
export type {
  SnapshotCheckpoint,
  SnapshotContext,
  SnapshotMode,
  SnapshotRow,
} from './engine/model/snapshot.js';
export { SnapshotRefusedError } from './engine/model/snapshot-refused-error.js';
export type { SinkKind } from './engine/model/sink-kind.js';
export type { SlotOriginContext } from './engine/model/slot-origin.js';
export type { Transaction } from './engine/model/transaction.js';
export { ReplicantConfigError } from './engine/options/config-error.js';
export type {
  BatchOptions,
  CheckpointStoreOptions,
  ResolvedBatchOptions,
  ResolvedCheckpointStoreOptions,
  ResolvedSinkRetryOptions,
  SinkRetryOptions,
} from './engine/options/delivery-options.js';
export type {
  HealthOptions,
  ResolvedHealthOptions,
} from './engine/options/health-options.js';
export type {
  AroundDelivery,
  ConnectionOption,
  ConnectionSettings,
  PipelineOptions,
  TypesOption,
} from './engine/options/pipeline-options.js';
export type {
  DecoderName,
  DecoderOptions,
  ResolvedDecoder,
  SchemaAndTable,
} from './engine/options/decoder-options.js';
export type { ResolvedOptions } from './engine/options/resolve-options.js';
export type {
  IncrementalSnapshotOptions,
  InitialSnapshotOptions,
  ResolvedSnapshotOptions,
  SnapshotOption,
} from './engine/options/snapshot-options.js';
export type {
  ResolvedSpillOptions,
  ResolvedStreamingOptions,
  SpillOptions,
  StreamingOptions,
} from './engine/options/streaming-options.js';
export { Pipeline } from './engine/pipeline.js';
export { PipelineStateError } from './engine/pipeline/state-error.js';
export type {
  PipelineEvents,
  PipelineListener,
} from './engine/telemetry/pipeline-events.js';
export type { PipelineState } from './engine/telemetry/pipeline-state.js';
export type { PipelineStatus } from './engine/telemetry/pipeline-status.js';
export type {
  NeverCopied,
  SnapshotStatus,
} from './engine/telemetry/snapshot-status.js';
export type { SourceWait } from './engine/telemetry/source-wait.js';
export type { WalHolder, SlotStatus } from './engine/telemetry/slot-status.js';
export {
  DEFAULT_PIPELINE,
  definePipeline,
  type PipelineHandle,
  type PipelineName,
} from './pipelines/define-pipeline.js';
export { getPipelineToken } from './pipelines/get-pipeline-token.js';
export { InjectPipeline } from './pipelines/inject-pipeline.js';
export { ReplicantRegistry } from './pipelines/pipeline.registry.js';
export { ReplicantModule } from './replicant.module.js';
export type {
  PipelinesOptions,
  ReplicantModuleAsyncOptions,
  ReplicantModuleExtras,
  ReplicantModuleOptions,
  ReplicantOptionsFactory,
} from './replicant.module-definition.js';
export type { ChangeContext } from './sinks/change-handlers.js';
export type { ChangeOp } from './sinks/change-settings.js';
export { SinkDefinitionError } from './sinks/sink-definition.error.js';
