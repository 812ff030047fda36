package io.tidewise.load;

import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.apache.flink.api.connector.source.Boundedness;
import org.apache.flink.api.connector.source.Source;
import org.apache.flink.api.connector.source.SourceReader;
import org.apache.flink.api.connector.source.SourceReaderContext;
import org.apache.flink.api.connector.source.SplitEnumerator;
import org.apache.flink.api.connector.source.SplitEnumeratorContext;
import org.apache.flink.core.io.SimpleVersionedSerializer;

/**
 * A source that owes records by the clock: the trace says how many are due since {@code startMs}; what is due and not
 * yet emitted is the backlog, shown as Flink's standard metric pendingRecords. It stands for a broker's topic with
 * lag.
 */
public final class OwedSource<T> implements Source<T, OwedSplit, List<OwedSplit>> {
    private static final long serialVersionUID = 1L;

    private final RateTrace trace;
    private final long startMs;
    private final int splits;
    private final RecordMaker<T> maker;
    private final ReaderOptions options;

    public OwedSource(RateTrace trace, long startMs, int splits, RecordMaker<T> maker, ReaderOptions options) {
        this.trace = trace;
        this.startMs = startMs;
        this.splits = splits;
        this.maker = maker;
        this.options = options;
    }

    @Override
    public Boundedness getBoundedness() {
        return Boundedness.CONTINUOUS_UNBOUNDED;
    }

    @Override
    public SourceReader<T, OwedSplit> createReader(SourceReaderContext context) {
        return new OwedReader<>(context, trace, startMs, maker, options);
    }

    @Override
    public SplitEnumerator<OwedSplit, List<OwedSplit>> createEnumerator(SplitEnumeratorContext<OwedSplit> context) {
        return restoreEnumerator(
                context, IntStream.range(0, splits).mapToObj(i -> new OwedSplit(i, splits, 0)).toList());
    }

    @Override
    public SplitEnumerator<OwedSplit, List<OwedSplit>> restoreEnumerator(
            SplitEnumeratorContext<OwedSplit> context, List<OwedSplit> unassigned) {
        return new Enumerator(context, unassigned);
    }

    @Override
    public SimpleVersionedSerializer<OwedSplit> getSplitSerializer() {
        return new OwedSplit.Serializer();
    }

    @Override
    public SimpleVersionedSerializer<List<OwedSplit>> getEnumeratorCheckpointSerializer() {
        return new OwedSplit.ListSerializer();
    }

    /** Hands every share to reader (index mod parallelism); after a rescale Flink spreads the readers' state itself. */
    private static final class Enumerator implements SplitEnumerator<OwedSplit, List<OwedSplit>> {
        private final SplitEnumeratorContext<OwedSplit> context;
        private final List<OwedSplit> unassigned;

        Enumerator(SplitEnumeratorContext<OwedSplit> context, List<OwedSplit> unassigned) {
            this.context = context;
            this.unassigned = new ArrayList<>(unassigned);
        }

        @Override
        public void start() {}

        @Override
        public void handleSplitRequest(int subtask, String host) {}

        @Override
        public void addSplitsBack(List<OwedSplit> shares, int subtask) {
            unassigned.addAll(shares);
        }

        @Override
        public void addReader(int subtask) {
            List<OwedSplit> mine = unassigned.stream()
                    .filter(share -> share.index % context.currentParallelism() == subtask)
                    .toList();
            mine.forEach(share -> context.assignSplit(share, subtask));
            unassigned.removeAll(mine);
        }

        @Override
        public List<OwedSplit> snapshotState(long checkpointId) {
            return List.copyOf(unassigned);
        }

        @Override
        public void close() {}
    }
}
