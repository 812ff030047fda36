package io.tidewise.nexmark;

import java.util.List;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.runtime.state.FunctionInitializationContext;
import org.apache.flink.runtime.state.FunctionSnapshotContext;
import org.apache.flink.streaming.api.checkpoint.CheckpointedFunction;
import org.apache.flink.table.data.RowData;

/**
 * Counts the rows that reach the sink, and how old they are.
 *
 * <p>{@code receivedInAll} counts since the job was submitted; it is state, so a restart goes back to the checkpoint.
 * {@code oldestArrivedMs} is the highest age of the last five to ten seconds, -1 without a row: the time since the
 * event became due that is in the column {@code created}.
 */
final class Arrivals extends RichMapFunction<RowData, RowData> implements CheckpointedFunction {
    private static final long serialVersionUID = 1L;
    private static final long HALF_MS = 5_000;

    private final int column;
    private transient ListState<Long> counts; // one entry for each subtask of the checkpoint
    private transient volatile long receivedInAll; // read by the thread that serves metrics
    private transient long begunMs;
    private transient long oldestMs;
    private transient long oldestBeforeMs;

    Arrivals(int column) {
        this.column = column;
    }

    @Override
    public void initializeState(FunctionInitializationContext context) throws Exception {
        counts = context.getOperatorStateStore().getListState(new ListStateDescriptor<>("received", Types.LONG));
        long sum = 0;
        for (long one : counts.get()) {
            sum += one;
        }
        receivedInAll = sum;
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
    public RowData map(RowData row) {
        receivedInAll = receivedInAll + 1;
        note(System.currentTimeMillis(), row.getTimestamp(column, 3).getMillisecond());
        return row;
    }

    private synchronized void note(long nowMs, long createdMs) {
        turn(nowMs);
        oldestMs = Math.max(oldestMs, nowMs - createdMs);
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
