package io.tidewise.load;

import java.util.List;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.runtime.state.FunctionInitializationContext;
import org.apache.flink.runtime.state.FunctionSnapshotContext;
import org.apache.flink.streaming.api.checkpoint.CheckpointedFunction;

/**
 * Counts the records that reach the sink, in whose chain it stands, and how old they are.
 *
 * <p>{@code receivedInAll} counts since the job was submitted; it is state, so a restart goes back to the checkpoint.
 * {@code oldestArrivedMs} is the highest age of the last five to ten seconds, -1 without a record: the time since it
 * became due.
 */
public abstract class ArrivalCounts<T> extends RichMapFunction<T, T> implements CheckpointedFunction {
    private static final long serialVersionUID = 1L;
    private static final long HALF_MS = 5_000;

    private transient ListState<Long> counts; // one entry for each subtask of the checkpoint
    private transient volatile long receivedInAll; // read by the thread that serves metrics
    private transient long begunMs;
    private transient long oldestMs;
    private transient long oldestBeforeMs;

    /** When a record became due, epoch milliseconds. */
    protected abstract long dueMs(T one);

    @Override
    public void initializeState(FunctionInitializationContext context) throws Exception {
        counts = context.getOperatorStateStore().getListState(new ListStateDescriptor<>("received", Types.LONG));
        receivedInAll = SnapshotCounts.sum(counts.get());
        begunMs = System.currentTimeMillis();
        oldestMs = -1;
        oldestBeforeMs = -1;
        getRuntimeContext().getMetricGroup().gauge("receivedInAll", () -> receivedInAll);
        getRuntimeContext().getMetricGroup().gauge("oldestArrivedMs", this::readOldest);
    }

    @Override
    public void snapshotState(FunctionSnapshotContext context) throws Exception {
        counts.update(List.of(receivedInAll));
    }

    @Override
    public T map(T one) {
        receivedInAll = receivedInAll + 1;
        note(System.currentTimeMillis(), dueMs(one));
        return one;
    }

    private synchronized void note(long nowMs, long dueMs) {
        turn(nowMs);
        oldestMs = Math.max(oldestMs, nowMs - dueMs);
    }

    private synchronized long readOldest() {
        turn(System.currentTimeMillis());
        return Math.max(oldestMs, oldestBeforeMs);
    }

    private void turn(long nowMs) {
        if (nowMs - begunMs >= HALF_MS) {
            oldestBeforeMs = nowMs - begunMs >= 2 * HALF_MS ? -1 : oldestMs;
            oldestMs = -1;
            begunMs = nowMs;
        }
    }
}
