package io.tidewise.load;

import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple3;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.util.Collector;

/** Count and sum per customer in keyed state; every n-th order of a customer emits (customer, orders, cents). */
final class Totals extends KeyedProcessFunction<Integer, Order, Tuple3<Integer, Long, Long>> {
    private static final long serialVersionUID = 1L;

    private final int emitEvery;
    private transient ValueState<Long> orders;
    private transient ValueState<Long> cents;

    Totals(int emitEvery) {
        this.emitEvery = emitEvery;
    }

    @Override
    public void open(OpenContext context) {
        orders = getRuntimeContext().getState(new ValueStateDescriptor<>("orders", Types.LONG));
        cents = getRuntimeContext().getState(new ValueStateDescriptor<>("cents", Types.LONG));
    }

    @Override
    public void processElement(Order order, Context context, Collector<Tuple3<Integer, Long, Long>> out)
            throws Exception {
        long count = (orders.value() == null ? 0L : orders.value()) + 1;
        long sum = (cents.value() == null ? 0L : cents.value()) + order.amountCents;
        orders.update(count);
        cents.update(sum);
        if (count % emitEvery == 0) {
            out.collect(Tuple3.of(order.customer, count, sum));
        }
    }
}
