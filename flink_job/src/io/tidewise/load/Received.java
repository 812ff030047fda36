package io.tidewise.load;

import java.util.List;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple3;
import org.apache.flink.runtime.state.FunctionInitializationContext;
import org.apache.flink.runtime.state.FunctionSnapshotContext;
import org.apache.flink.streaming.api.checkpoint.CheckpointedFunction;

/**
 * Counts what reaches the sink, in whose chain it stands, since the job was submitted.
 *
 * <p>{@code receivedAtSnapshot} is the count in the checkpoint {@code snapshotId}: it is compared with what the source
 * had emitted and {@link Totals} held in the same checkpoint, exactly.
 */
final class Received extends RichMapFunction<Tuple3<Integer, Long, Long>, Tuple3<Integer, Long, Long>>
        implements CheckpointedFunction {
    private static final long serialVersionUID = 1L;

    private transient ListState<Long> counts; // one entry for each subtask of the checkpoint
    private transient long receivedInAll;
    private transient SnapshotCounts shown;

    @Override
    public void initializeState(FunctionInitializationContext context) throws Exception {
        counts = context.getOperatorStateStore().getListState(new ListStateDescriptor<>("received", Types.LONG));
        receivedInAll = SnapshotCounts.sum(counts.get());
        shown = new SnapshotCounts(getRuntimeContext().getMetricGroup(), "receivedAtSnapshot");
    }

    @Override
    public void snapshotState(FunctionSnapshotContext context) throws Exception {
        counts.update(List.of(receivedInAll));
        shown.show(context.getCheckpointId(), receivedInAll);
    }

    @Override
    public Tuple3<Integer, Long, Long> map(Tuple3<Integer, Long, Long> total) {
        receivedInAll++;
        return total;
    }
}
