import { PrismaPg } from '@prisma/adapter-pg';
import { PrismaClient } from '../.build/prisma/client.js';

export class PrismaService extends PrismaClient {
  constructor(connectionString: string) {
    super({ adapter: new PrismaPg({ connectionString }) });
  }
}
