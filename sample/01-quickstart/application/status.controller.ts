import { Controller, Get } from '@nestjs/common';
import {
  InjectPipeline,
  Pipeline,
  type PipelineStatus,
} from 'nestjs-replicant';

/** Where the pipeline is. */
@Controller('status')
export class StatusController {
  constructor(@InjectPipeline() private readonly pipeline: Pipeline) {}

  @Get()
  status(): PipelineStatus {
    return this.pipeline.status();
  }
}
