import { Injectable, Module } from '@nestjs/common';
import { say } from '../../apps/settings.js';
import type { Point } from '../modes.js';

/** Where the parent wants this process to stand. */
@Injectable()
export class Points {
  /** Transactions that the sink has, and the store of a batch has not. */
  unstored = 0;
  #wanted: string | null = null;
  #passes = 0;

  /**
   * Asks to stand at a point from now on.
   *
   * @param passes - how often it is passed before
   */
  want(point: string, passes: number): void {
    this.#wanted = point;
    this.#passes = passes;
  }

  wants(point: Point): boolean {
    return point === this.#wanted;
  }

  /** Stands here for ever when one of these points is wanted, and says so: what follows is a SIGKILL. */
  async at(...points: readonly Point[]): Promise<void> {
    const point = points.find((one) => one === this.#wanted);
    if (point === undefined) return;
    if (this.#passes > 0) {
      this.#passes -= 1;
      return;
    }
    say(`stands ${point}`);
    await forever();
  }

  /** Goes no further when this point is wanted, which lies behind: the parent knows by itself that it is reached. */
  async beyond(point: Point): Promise<void> {
    if (point === this.#wanted) await forever();
  }
}

function forever(): Promise<never> {
  return new Promise(() => {});
}

@Module({ providers: [Points], exports: [Points] })
export class PointsModule {}
