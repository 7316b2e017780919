import { Column, Entity, PrimaryColumn } from 'typeorm';

@Entity('orders')
export class Order {
  @PrimaryColumn('integer')
  id!: number;

  @Column('integer')
  total!: number;
}
