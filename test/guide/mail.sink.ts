import {
  type ChangeContext,
  formatLsn,
  type Insert,
  OnChange,
  ReplicantSink,
} from 'nestjs-replicant';

type Order = { id: number; email: string };

/** Whatever sends mail. */
export abstract class Mailer {
  abstract send(mail: {
    messageId: string;
    to: string;
    text: string;
  }): Promise<void>;
}

@ReplicantSink()
export class OrderMails {
  constructor(private readonly mailer: Mailer) {}

  @OnChange('public.orders', { on: ['insert'] })
  async confirm(
    { record, ordinal }: Insert<'public.orders', Order>,
    { transaction }: ChangeContext,
  ): Promise<void> {
    await this.mailer.send({
      messageId: `<${formatLsn(transaction.commitLsn)}-${ordinal}@shop.example>`,
      to: record.email,
      text: `We have your order ${record.id}.`,
    });
  }
}
