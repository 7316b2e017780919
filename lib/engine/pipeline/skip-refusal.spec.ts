import { describe, expect, it } from 'vitest';
import { Halt } from '../model/halt.js';
import { HALTS, type HaltCode } from '../model/halts.js';
import type { Lsn } from '../model/lsn.js';
import type { PipelineState } from '../telemetry/pipeline-state.js';
import { skipRefusal } from './skip-refusal.js';

function refusal(
  code: HaltCode | null,
  lsn: Lsn | null,
  asked: Lsn,
  state: PipelineState = 'halted',
  stopping = false,
): string | null {
  const halt =
    code === null
      ? null
      : new Halt(code, { detail: '', ...(lsn !== null && { lsn }) });
  return skipRefusal({ state, stopping, halt }, asked);
}

describe('passing over', () => {
  it.each(Object.keys(HALTS).filter(isOfSink))('is allowed at %s', (code) => {
    expect(refusal(code, 0x10n, 0x10n)).toBeNull();
  });

  it.each(Object.keys(HALTS).filter((code) => !isOfSink(code)))(
    'is refused at %s, whatever the position',
    (code) => {
      if (!isCode(code)) throw new Error('It is no code.');
      expect(refusal(code, 0x10n, 0x10n)).toContain(`halted with ${code}`);
    },
  );

  it.each<PipelineState>([
    'idle',
    'connecting',
    'streaming',
    'reconnecting',
    'standby',
    'stopped',
  ])('is refused while the pipeline is %s', (state) => {
    expect(refusal(null, null, 0x10n, state)).toContain(
      `has not halted (${state})`,
    );
  });

  it('is refused while the pipeline is being stopped, halted or not', () => {
    for (const code of [null, 'sink_failed'] as const)
      expect(refusal(code, 0x10n, 0x10n, 'draining', true)).toContain(
        'is being stopped',
      );
  });

  it.each([0n, 0xfn, 0x11n])('is refused at another position: %s', (asked) => {
    expect(refusal('sink_failed', 0x10n, asked)).toContain('halted at 0/10');
  });

  it('is refused where nobody knows the transaction, with the option that finds it', () => {
    expect(refusal('sink_failed', null, 0x10n)).toContain('option sinkRetry');
  });
});

function isCode(code: string): code is HaltCode {
  return code in HALTS;
}

function isOfSink(code: string): code is HaltCode {
  return code.startsWith('sink_failed');
}
