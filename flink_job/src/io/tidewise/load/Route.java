package io.tidewise.load;

import org.apache.flink.streaming.api.functions.ProcessFunction;
import org.apache.flink.util.Collector;
import org.apache.flink.util.OutputTag;

/** Sends one order in so many over a side output, the others on; which ones follows from their mixed numbers. */
final class Route extends ProcessFunction<Order, Order> {
    static final OutputTag<Order> EXPRESS = new OutputTag<>("express") {};

    private static final long serialVersionUID = 1L;

    private final int expressOneIn;

    Route(int expressOneIn) {
        this.expressOneIn = expressOneIn;
    }

    @Override
    public void processElement(Order order, Context context, Collector<Order> out) {
        if (Math.floorMod(Order.mix(order.sequence), expressOneIn) == 0) {
            context.output(EXPRESS, order);
        } else {
            out.collect(order);
        }
    }
}
