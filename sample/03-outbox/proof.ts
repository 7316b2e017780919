import { NestFactory } from '@nestjs/core';
import { waitFor } from '../../test/support/wait-for.js';
import type { Environment } from './environment.js';
import { ServiceProcesses } from './service-processes.js';
import { OrderService } from './shop/order.service.js';
import { ShopModule } from './shop/shop.module.js';
import {
  countDropped,
  judge,
  type Queryable,
  type Verdict,
} from './verdict.js';

const ORDERS = 200;
/** Customers who order at the same time. */
const LANES = 4;
const AMENDMENTS = 2;
const EVENTS = ORDERS * (1 + AMENDMENTS);
/** Events that shall be sent twice. */
const REPETITIONS = 3;
/** Events from one kill to the next. */
const STEP = EVENTS / 6;
const TIMEOUT_MS = 30_000;

/** The verdict, and how often the relay was killed. */
export type ProofResult = Verdict & { readonly kills: number };

/**
 * Kills the relay between sending and checkpoint while orders come in, and looks whether billing has booked each event once.
 */
export class Proof {
  #kills = 0;
  #stopped = false;

  constructor(private readonly environment: Environment) {}

  async run(
    stop: AbortSignal,
  ): Promise<{ result: ProofResult; passed: boolean }> {
    stop.addEventListener('abort', () => (this.#stopped = true));
    const services = new ServiceProcesses(this.environment);
    try {
      await services.start();
      await Promise.all([this.#order(), this.#killUntilRepeated(services)]);
      await this.#until(
        services,
        async () => (await this.#booked()) >= EVENTS,
        'all events to be booked',
      );
    } finally {
      this.#stopped = true;
      await services.stop();
    }
    return this.#judge();
  }

  /** What the shop does, with several customers at once. */
  async #order(): Promise<void> {
    const shop = await NestFactory.createApplicationContext(
      ShopModule.of(this.environment.shop.url),
      { logger: ['warn', 'error', 'fatal'] },
    );
    const orders = shop.get(OrderService);
    const lane = async () => {
      for (let n = 0; n < ORDERS / LANES && !this.#stopped; n++) {
        const id = await orders.place(1_000 + n);
        for (let times = 0; times < AMENDMENTS; times++)
          await orders.amend(id, 100);
      }
    };
    try {
      await Promise.all(Array.from({ length: LANES }, lane));
    } finally {
      await shop.close();
    }
  }

  async #killUntilRepeated(services: ServiceProcesses): Promise<void> {
    for (let due = STEP; due < EVENTS && !this.#stopped; due += STEP) {
      await this.#until(
        services,
        async () => (await this.#booked()) >= due,
        `${due} events to be booked`,
      );
      await this.#killBeforeCheckpoint(services);
      const [booked, dropped] = await this.#counts();
      await services.startRelay();
      await this.#until(
        services,
        async () => {
          const [bookedSince, droppedSince] = await this.#counts();
          return bookedSince > booked || droppedSince > dropped;
        },
        'the relay to go on',
      );
      console.log(
        `SIGKILL ${this.#kills}: ${booked} events booked; ${await countDropped(this.environment.billing)} came twice so far`,
      );
      if ((await countDropped(this.environment.billing)) >= REPETITIONS) return;
    }
  }

  /** The lock makes a moment last that is over at once: the event is booked, and the checkpoint behind it not yet written. */
  async #killBeforeCheckpoint(services: ServiceProcesses): Promise<void> {
    const { shop } = this.environment;
    const client = await shop.connect();
    await client.query(
      'BEGIN; LOCK TABLE relay.replicant_checkpoints IN EXCLUSIVE MODE',
    );
    try {
      await this.#until(
        services,
        async () => (await waiting(shop)).length > 0,
        'the relay to write a checkpoint',
      );
      await services.killRelay();
      this.#kills += 1;
      // A session that waits for a lock does not notice that its client is gone, and would still write.
      for (const { pid } of await waiting(shop))
        await shop.query('SELECT pg_terminate_backend($1)', [pid]);
    } finally {
      await client.end();
    }
  }

  async #booked(): Promise<number> {
    const [booked] = await this.#counts();
    return booked;
  }

  /** Events that are booked, and deliveries that were dropped. */
  async #counts(): Promise<readonly [booked: number, dropped: number]> {
    const { billing } = this.environment;
    const [inbox] = await billing.query<{ seen: number }>(
      'SELECT count(*)::int AS seen FROM inbox',
    );
    return [inbox?.seen ?? 0, await countDropped(billing)];
  }

  async #until(
    services: ServiceProcesses,
    condition: () => Promise<boolean>,
    message: string,
  ): Promise<void> {
    await waitFor(
      () => {
        if (this.#stopped) throw new Error('Interrupted.');
        services.refuseEnd();
        return condition();
      },
      { timeout: TIMEOUT_MS, message },
    );
  }

  async #judge(): Promise<{ result: ProofResult; passed: boolean }> {
    const { shop, billing } = this.environment;
    const verdict = await judge(shop, billing);
    const { events, lost, appliedTwice, outOfOrder, dropped } = verdict;
    return {
      result: { ...verdict, kills: this.#kills },
      passed:
        events === EVENTS &&
        lost + appliedTwice + outOfOrder === 0 &&
        // At least the one that is to be shown, and never more than one for each kill.
        dropped >= REPETITIONS &&
        dropped <= this.#kills,
    };
  }
}

/** Server processes that wait for the lock on the checkpoint. */
function waiting(shop: Queryable): Promise<{ pid: number }[]> {
  return shop.query(
    `SELECT pid FROM pg_locks WHERE NOT granted AND relation = 'relay.replicant_checkpoints'::regclass`,
  );
}
