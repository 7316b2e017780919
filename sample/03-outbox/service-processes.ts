import { fileURLToPath } from 'node:url';
import { ApplicationProcess } from '../../test/support/application-process.js';
import { freePort } from '../../test/support/free-port.js';
import type { Environment } from './environment.js';

const RELAY = fileURLToPath(new URL('relay/main.js', import.meta.url));
const BILLING = fileURLToPath(new URL('billing/main.js', import.meta.url));

/** Billing and the relay, each in a process of its own. */
export class ServiceProcesses {
  #billing: ApplicationProcess | null = null;
  #relay: ApplicationProcess | null = null;
  #port = 0;

  constructor(private readonly environment: Environment) {}

  async start(): Promise<void> {
    this.#port = await freePort();
    this.#billing = new ApplicationProcess(BILLING, {
      DATABASE_URL: this.environment.billingUrl,
      BILLING_PORT: String(this.#port),
    });
    await this.#billing.says('ready');
    await this.startRelay();
  }

  /** Resolves when it streams. */
  async startRelay(): Promise<void> {
    this.#relay = new ApplicationProcess(RELAY, {
      DATABASE_URL: this.environment.relayUrl,
      BILLING_PORT: String(this.#port),
    });
    await this.#relay.says('ready');
  }

  /** SIGKILL: the relay ends wherever it is. */
  async killRelay(): Promise<void> {
    await this.#relay?.kill();
  }

  /** @throws when one of them has ended by itself */
  refuseEnd(): void {
    this.#billing?.refuseEnd();
    this.#relay?.refuseEnd();
  }

  /** SIGTERM, first to the relay: it finishes what it is sending. */
  async stop(): Promise<void> {
    for (const service of [this.#relay, this.#billing]) {
      service?.signal('SIGTERM');
      await service?.ended();
    }
  }
}
