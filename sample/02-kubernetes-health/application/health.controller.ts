import { Controller, Get } from '@nestjs/common';
import {
  HealthCheck,
  type HealthCheckResult,
  HealthCheckService,
} from '@nestjs/terminus';
import { ReplicantHealthIndicator } from 'nestjs-replicant/terminus';

/** What the three probes of kubernetes/deployment.yaml ask. Indicators of other parts stand beside that of the pipelines. */
@Controller('health')
export class HealthController {
  constructor(
    private readonly health: HealthCheckService,
    private readonly replicant: ReplicantHealthIndicator,
  ) {}

  /** Fails only when a restart would help. Nothing that depends on another system belongs here. */
  @Get('live')
  @HealthCheck()
  live(): Promise<HealthCheckResult> {
    return this.health.check([() => this.replicant.liveness()]);
  }

  /** Fails while the pipelines are not at work. */
  @Get('ready')
  @HealthCheck()
  ready(): Promise<HealthCheckResult> {
    return this.health.check([() => this.replicant.readiness()]);
  }

  /** Fails until the pipelines have started. */
  @Get('startup')
  @HealthCheck()
  startup(): Promise<HealthCheckResult> {
    return this.health.check([() => this.replicant.startup()]);
  }
}
