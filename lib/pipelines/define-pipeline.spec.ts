import { describe, expect, it } from 'vitest';
import { definePipeline, pipelineName } from './define-pipeline.js';
import { getPipelineToken } from './get-pipeline-token.js';

describe('names of pipelines', () => {
  it('are the same as string and as handle', () => {
    const orders = definePipeline<{ 'public.orders': { id: string } }>(
      'orders',
    );
    expect(pipelineName(orders)).toBe('orders');
    expect(getPipelineToken(orders)).toBe(getPipelineToken('orders'));
  });

  it('fall back to that of the short form', () => {
    expect(pipelineName()).toBe('default');
    expect(getPipelineToken()).toBe(getPipelineToken('default'));
  });

  it('cannot be changed through the handle', () => {
    expect(Object.isFrozen(definePipeline('orders'))).toBe(true);
  });
});
