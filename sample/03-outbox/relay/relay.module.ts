import { Module } from '@nestjs/common';
import { ClientsModule, Transport } from '@nestjs/microservices';
import { ReplicantModule } from 'nestjs-replicant';
import { setting } from '../settings.js';
import { SLOT } from '../schema.js';
import { BILLING, OutboxRelay } from './outbox.relay.js';

@Module({
  imports: [
    ClientsModule.registerAsync([
      {
        name: BILLING,
        useFactory: () => ({
          transport: Transport.TCP,
          options: { host: '127.0.0.1', port: Number(setting('BILLING_PORT')) },
        }),
      },
    ]),
    ReplicantModule.forRootAsync({
      useFactory: () => ({
        connection: setting('DATABASE_URL'),
        slotName: SLOT,
        publication: 'outbox_pub',
        // The outbox is empty at the first start, so there is nothing to send first.
        goForwardOnly: true,
        // Sending cannot be part of a database transaction, so the library keeps the checkpoint: after each event is sent.
        checkpointStore: { connection: setting('DATABASE_URL') },
        // Billing may be away for a moment.
        sinkRetry: { maxRetries: 8, backoffMs: 250 },
        startup: 'wait',
        onHalt: 'exit',
      }),
    }),
  ],
  providers: [OutboxRelay],
})
export class RelayModule {}
