import { Controller, HttpCode, Post } from '@nestjs/common';
import { InjectPipeline, type Pipeline } from 'nestjs-replicant';

/** For whoever has mended the cause of a halt. No Service leads to this port; where one does, guard it. */
@Controller('repair')
export class RepairController {
  constructor(@InjectPipeline() private readonly pipeline: Pipeline) {}

  /** Starts a halted pipeline anew, without a restart of the pod. */
  @Post('start')
  @HttpCode(202)
  start(): void {
    this.pipeline.start();
  }
}
