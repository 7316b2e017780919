export { type Condition, type Health } from './probe.js';
export {
  ReplicantHealthIndicator,
  type PipelineHealth,
} from './replicant.health-indicator.js';
