import { integer, pgTable } from 'drizzle-orm/pg-core';

export const orders = pgTable('orders', {
  id: integer().primaryKey(),
  total: integer().notNull(),
});
