/** The tables of the source that the sinks read. */
export interface Shop {
  'public.orders': { id: number; total: number };
}
