package io.tidewise.load;

import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.runtime.state.FunctionInitializationContext;
import org.apache.flink.runtime.state.FunctionSnapshotContext;
import org.apache.flink.streaming.api.checkpoint.CheckpointedFunction;

/** Shows how old orders are in front of the sink, in whose chain it stands. */
final class Aged extends RichMapFunction<Order, Order> implements CheckpointedFunction {
    private static final long serialVersionUID = 1L;
    private transient AgeGauge gauge;

    // Not in open(), whose argument is another one from Flink 1.19 on.
    @Override
    public void initializeState(FunctionInitializationContext context) {
        gauge = new AgeGauge(getRuntimeContext().getMetricGroup());
    }

    @Override
    public void snapshotState(FunctionSnapshotContext context) {}

    @Override
    public Order map(Order order) {
        gauge.note(order.dueMs);
        return order;
    }
}
