package io.tidewise.load;

import java.util.List;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple3;
import org.apache.flink.runtime.state.FunctionInitializationContext;
import org.apache.flink.runtime.state.FunctionSnapshotContext;
import org.apache.flink.streaming.api.checkpoint.CheckpointedFunction;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.util.Collector;

/**
 * Count and sum per customer in keyed state; every n-th order of a customer emits (customer, orders, cents).
 *
 * <p>{@code countedInAll} is the number of orders since the job was submitted. It is state as well, so beside what the
 * source has emitted it shows whether restarts and rescales lose or repeat any. {@code heldAtSnapshot} is how many of
 * them no record has been emitted for, in the checkpoint {@code snapshotId}.
 */
final class Totals extends KeyedProcessFunction<Integer, Order, Tuple3<Integer, Long, Long>>
        implements CheckpointedFunction {
    private static final long serialVersionUID = 1L;

    private final int emitEvery;
    private final Behaviour behaviour;
    private transient ValueState<Long> orders;
    private transient ValueState<Long> cents;
    private transient ListState<Long> counts; // one entry for each subtask of the checkpoint
    private transient volatile long countedInAll; // read by the thread that serves metrics
    private transient ListState<Long> held; // the same
    private transient long heldInAll;
    private transient SnapshotCounts shown;

    Totals(int emitEvery, Behaviour behaviour) {
        this.emitEvery = emitEvery;
        this.behaviour = behaviour;
    }

    // Everything is opened here and not in open(), whose argument is another one from Flink 1.19 on.
    @Override
    public void initializeState(FunctionInitializationContext context) throws Exception {
        orders = context.getKeyedStateStore().getState(new ValueStateDescriptor<>("orders", Types.LONG));
        cents = context.getKeyedStateStore().getState(new ValueStateDescriptor<>("cents", Types.LONG));
        counts = context.getOperatorStateStore().getListState(new ListStateDescriptor<>("counts", Types.LONG));
        held = context.getOperatorStateStore().getListState(new ListStateDescriptor<>("held", Types.LONG));
        countedInAll = SnapshotCounts.sum(counts.get());
        heldInAll = SnapshotCounts.sum(held.get());
        getRuntimeContext().getMetricGroup().gauge("countedInAll", () -> countedInAll);
        shown = new SnapshotCounts(getRuntimeContext().getMetricGroup(), "countedAtSnapshot", "heldAtSnapshot");
    }

    @Override
    public void snapshotState(FunctionSnapshotContext context) throws Exception {
        behaviour.atSnapshot();
        counts.update(List.of(countedInAll));
        held.update(List.of(heldInAll));
        shown.show(context.getCheckpointId(), countedInAll, heldInAll);
    }

    @Override
    public void processElement(Order order, Context context, Collector<Tuple3<Integer, Long, Long>> out)
            throws Exception {
        long count = (orders.value() == null ? 0L : orders.value()) + 1;
        long sum = (cents.value() == null ? 0L : cents.value()) + order.amountCents;
        orders.update(count);
        cents.update(sum);
        countedInAll = countedInAll + 1;
        heldInAll++;
        if (count % emitEvery == 0) {
            heldInAll -= emitEvery;
            out.collect(Tuple3.of(order.customer, count, sum));
        }
    }
}
