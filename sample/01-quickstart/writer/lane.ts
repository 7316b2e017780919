import { escapeLiteral } from 'pg';
import type { ExistingRows } from './existing-rows.js';
import { Random } from './random.js';

/** One transaction to be sent to the source. */
export interface PlannedTransaction {
  readonly sql: string;
  readonly commits: boolean;
}

interface Order {
  number: string;
  customer: number;
  lines: number[];
  nextLine: number;
}

interface State {
  customers: number[];
  orders: Order[];
  nextCustomer: number;
  nextOrder: number;
}

const MAX_CUSTOMERS = 60;
const MAX_ORDERS = 200;
const ROLLBACK_PROBABILITY = 0.05;
const SAVEPOINT_PROBABILITY = 0.05;
const STATUSES = ['new', 'paid', 'packed', 'sent', 'returned'] as const;

/**
 * Plans the transactions of one connection. A lane has customers and orders of its own, so that lanes neither wait for
 * each other nor change what the others plan: the seed alone decides what is written.
 */
export class Lane {
  readonly #random: Random;
  readonly #lane: number;
  #state: State = { customers: [], orders: [], nextCustomer: 1, nextOrder: 1 };

  /** @param existing - rows of before that belong to this lane; each order has one line */
  constructor(seed: number, lane: number, existing: ExistingRows) {
    this.#random = new Random(seed * 1000 + lane);
    this.#lane = lane;
    this.#state.customers.push(...existing.customers);
    this.#state.orders.push(
      ...existing.orders.map((order) => ({
        ...order,
        lines: [1],
        nextLine: 2,
      })),
    );
  }

  /** The next transaction. Each that commits changes at least one row. */
  next(): PlannedTransaction {
    const commits = !this.#random.happens(ROLLBACK_PROBABILITY);
    const before = commits ? null : structuredClone(this.#state);
    const statements = this.#statements();
    if (before !== null) this.#state = before;
    const all = ['BEGIN', ...statements, commits ? 'COMMIT' : 'ROLLBACK'];
    return { sql: all.join(';\n'), commits };
  }

  #statements(): string[] {
    const statements: string[] = [];
    if (this.#random.happens(SAVEPOINT_PROBABILITY)) {
      const before = structuredClone(this.#state);
      statements.push('SAVEPOINT attempt', ...this.#step());
      statements.push('ROLLBACK TO SAVEPOINT attempt');
      this.#state = before;
    }
    for (let steps = 1 + this.#random.below(2); steps > 0; steps--) {
      statements.push(...this.#step());
    }
    return statements;
  }

  #step(): string[] {
    const customer = this.#pick(this.#state.customers);
    const order = this.#pick(this.#state.orders);
    if (customer === undefined) return this.#addCustomer();
    if (order === undefined) return this.#addOrder(customer);
    const choice = this.#random.below(100);
    if (choice < 6) return this.#addCustomer();
    if (choice < 26) return this.#addOrder(customer);
    if (choice < 44) return this.#changeStatus(order);
    if (choice < 52) return this.#rewriteNote(order);
    if (choice < 60) return this.#renameCustomer(customer);
    if (choice < 64) return this.#rewriteProfile(customer);
    if (choice < 70) return this.#renumberOrder(order);
    if (choice < 72) return this.#renumberCustomer(customer);
    if (choice < 80) return this.#changeLine(order);
    if (choice < 86) return this.#replaceOrder(order);
    if (choice < 98) return this.#deleteOrder(order);
    return this.#deleteCustomer(customer);
  }

  #addCustomer(): string[] {
    if (this.#state.customers.length >= MAX_CUSTOMERS) {
      return this.#deleteCustomer(this.#state.customers[0]);
    }
    const id = this.#newCustomerId();
    this.#state.customers.push(id);
    return [
      `INSERT INTO customers VALUES (${id}, ${this.#short()}, ${this.#long()})`,
    ];
  }

  #addOrder(customer: number): string[] {
    const oldest = this.#state.orders[0];
    if (oldest !== undefined && this.#state.orders.length >= MAX_ORDERS) {
      return this.#deleteOrder(oldest);
    }
    const order = {
      number: this.#newOrderNumber(),
      customer,
      lines: [],
      nextLine: 1,
    };
    this.#state.orders.push(order);
    return this.#insertOrder(order);
  }

  #insertOrder(order: Order): string[] {
    order.lines = [];
    const lines = Array.from({ length: 1 + this.#random.below(3) }, () =>
      this.#newLine(order),
    );
    return [
      `INSERT INTO orders VALUES (${quote(order.number)}, ${order.customer}, ${this.#status()}, ${this.#amount()}, ${this.#long()})`,
      `INSERT INTO order_lines VALUES ${lines.join(', ')}`,
    ];
  }

  /** Leaves the long `note` alone: the stream says so instead of repeating it. */
  #changeStatus({ number }: Order): string[] {
    return [
      `UPDATE orders SET status = ${this.#status()}, total = ${this.#amount()} WHERE number = ${quote(number)}`,
    ];
  }

  #rewriteNote({ number }: Order): string[] {
    return [
      `UPDATE orders SET note = ${this.#long()} WHERE number = ${quote(number)}`,
    ];
  }

  #renameCustomer(id: number): string[] {
    return [`UPDATE customers SET name = ${this.#short()} WHERE id = ${id}`];
  }

  #rewriteProfile(id: number): string[] {
    return [`UPDATE customers SET profile = ${this.#long()} WHERE id = ${id}`];
  }

  /** A key change; the lines of the order follow by cascade. */
  #renumberOrder(order: Order): string[] {
    const old = order.number;
    order.number = this.#newOrderNumber();
    return [
      `UPDATE orders SET number = ${quote(order.number)} WHERE number = ${quote(old)}`,
    ];
  }

  #renumberCustomer(old: number): string[] {
    const id = this.#newCustomerId();
    const { customers, orders } = this.#state;
    customers.splice(customers.indexOf(old), 1, id);
    for (const order of orders) if (order.customer === old) order.customer = id;
    return [`UPDATE customers SET id = ${id} WHERE id = ${old}`];
  }

  #changeLine(order: Order): string[] {
    const line = this.#pick(order.lines);
    if (line === undefined) {
      return [`INSERT INTO order_lines VALUES ${this.#newLine(order)}`];
    }
    const where = `order_number = ${quote(order.number)} AND line = ${line}`;
    if (this.#random.happens(0.6)) {
      return [
        `UPDATE order_lines SET quantity = ${this.#random.below(100)} WHERE ${where}`,
      ];
    }
    order.lines.splice(order.lines.indexOf(line), 1);
    return [`DELETE FROM order_lines WHERE ${where}`];
  }

  /** The same key goes and comes back in one transaction. */
  #replaceOrder(order: Order): string[] {
    return [
      `DELETE FROM orders WHERE number = ${quote(order.number)}`,
      ...this.#insertOrder(order),
    ];
  }

  #deleteOrder(order: Order): string[] {
    this.#state.orders.splice(this.#state.orders.indexOf(order), 1);
    return [`DELETE FROM orders WHERE number = ${quote(order.number)}`];
  }

  #deleteCustomer(id: number | undefined): string[] {
    if (id === undefined) return this.#addCustomer();
    const state = this.#state;
    state.customers = state.customers.filter((customer) => customer !== id);
    state.orders = state.orders.filter(({ customer }) => customer !== id);
    return [`DELETE FROM customers WHERE id = ${id}`];
  }

  #newCustomerId(): number {
    return this.#state.nextCustomer++ * 100 + this.#lane;
  }

  #newOrderNumber(): string {
    return `${this.#lane}-${this.#state.nextOrder++}`;
  }

  #newLine(order: Order): string {
    const line = order.nextLine++;
    order.lines.push(line);
    return `(${quote(order.number)}, ${line}, ${this.#short()}, ${1 + this.#random.below(9)}, ${this.#amount()})`;
  }

  #status(): string {
    return quote(this.#pick(STATUSES) ?? STATUSES[0]);
  }

  #amount(): string {
    return (this.#random.below(1_000_000) / 100).toFixed(2);
  }

  #short(): string {
    return quote(`${this.#random.text(8)} 'Ä€🙂\\`);
  }

  /** Mostly so long that PostgreSQL stores it apart. */
  #long(): string {
    if (this.#random.happens(0.1)) return 'NULL';
    return quote(
      this.#random.text(
        this.#random.happens(0.2) ? 40 : 2_500 + this.#random.below(3_500),
      ),
    );
  }

  #pick<T>(from: readonly T[]): T | undefined {
    return from[this.#random.below(from.length)];
  }
}

function quote(text: string): string {
  return escapeLiteral(text);
}
