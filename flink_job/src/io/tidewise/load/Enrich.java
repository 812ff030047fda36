package io.tidewise.load;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.concurrent.locks.LockSupport;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.runtime.state.FunctionInitializationContext;
import org.apache.flink.runtime.state.FunctionSnapshotContext;
import org.apache.flink.streaming.api.checkpoint.CheckpointedFunction;

/**
 * The costly operator: burns processor time per record and may wait as for a lookup in another system.
 *
 * <p>The cost is measured as processor time of the thread, not as wall time, so that subtasks that compete for cores
 * slow each other down as real work does.
 *
 * <p>Above a parallelism it fails at its first record, as an operator does that cannot be rescaled.
 */
final class Enrich extends RichMapFunction<Order, Order> implements CheckpointedFunction {
    private static final long serialVersionUID = 1L;
    private static final int ROUNDS_PER_CHECK = 200;
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

    private final long costNs;
    private final long waitNs;
    private final int failsAbove;
    private final Behaviour behaviour;

    Enrich(long costUs, long waitUs, int failsAbove, Behaviour behaviour) {
        this.costNs = costUs * 1000;
        this.waitNs = waitUs * 1000;
        this.failsAbove = failsAbove;
        this.behaviour = behaviour;
    }

    // Not in open(), whose argument is another one from Flink 1.19 on.
    @Override
    public void initializeState(FunctionInitializationContext context) throws Exception {
        behaviour.atStart(FlinkApi.parallelismOf(getRuntimeContext()));
    }

    @Override
    public void snapshotState(FunctionSnapshotContext context) {}

    @Override
    public Order map(Order order) {
        if (FlinkApi.countSubtasks(getRuntimeContext()) > failsAbove) {
            throw new IllegalStateException("enrich cannot run at more than " + failsAbove + " subtasks");
        }
        long digest = order.sequence;
        if (costNs > 0) {
            long endNs = THREADS.getCurrentThreadCpuTime() + costNs;
            do {
                for (int round = 0; round < ROUNDS_PER_CHECK; round++) {
                    digest = Order.mix(digest);
                }
            } while (THREADS.getCurrentThreadCpuTime() < endNs);
        }
        if (waitNs > 0) {
            LockSupport.parkNanos(waitNs);
        }
        order.amountCents += digest & 1; // the result is used, so that the work is not optimised away
        return order;
    }
}
