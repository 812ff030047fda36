package io.tidewise.load;

/** Counts the orders that reach a sink. */
final class OrderArrivals extends ArrivalCounts<Order> {
    private static final long serialVersionUID = 1L;

    @Override
    protected long dueMs(Order order) {
        return order.dueMs;
    }
}
