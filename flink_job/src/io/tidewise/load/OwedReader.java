package io.tidewise.load;

import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.apache.flink.api.connector.source.ReaderOutput;
import org.apache.flink.api.connector.source.SourceReader;
import org.apache.flink.api.connector.source.SourceReaderContext;
import org.apache.flink.core.io.InputStatus;
import org.apache.flink.metrics.Counter;

/** Emits what its shares owe, one record per call; while nothing is due it sleeps (idle for Flink) or, if so told, waits. */
final class OwedReader<T> implements SourceReader<T, OwedSplit> {
    private static final long CLOCK_STEP_NS = 1_000_000; // the clock and the trace are looked up at most once per ms
    private static final long NAP_MS = 2;

    private final SourceReaderContext context;
    private final RateTrace trace;
    private final long startMs;
    private final RecordMaker<T> maker;
    private final ReaderOptions options;
    private final Counter in;
    private final List<OwedSplit> shares = new CopyOnWriteArrayList<>();
    private final ScheduledExecutorService alarm = Executors.newSingleThreadScheduledExecutor(task -> {
        Thread thread = new Thread(task, "owed-source-alarm");
        thread.setDaemon(true);
        return thread;
    });

    private SnapshotCounts shown;
    private double dueInAll;
    private long lookedUpNs = System.nanoTime() - CLOCK_STEP_NS;
    private int cursor;

    OwedReader(
            SourceReaderContext context,
            RateTrace trace,
            long startMs,
            RecordMaker<T> maker,
            ReaderOptions options) {
        this.context = context;
        this.trace = trace;
        this.startMs = startMs;
        this.maker = maker;
        this.options = options;
        this.in = context.metricGroup().getIOMetricGroup().getNumRecordsInCounter();
    }

    @Override
    public void start() {
        if (options.showsPending) {
            context.metricGroup().setPendingRecordsGauge(this::backlog);
        }
        context.metricGroup().gauge("emittedInAll", this::emittedInAll);
        context.metricGroup().gauge("oldestDueMs", this::oldestDueMs);
        shown = new SnapshotCounts(context.metricGroup(), "emittedAtSnapshot");
    }

    /** Emitted since the job was submitted: it is state, so a restart goes back to what the checkpoint has. */
    private long emittedInAll() {
        return shares.stream().mapToLong(share -> share.emitted).sum();
    }

    /** Due but not emitted, by the clock of this moment: it grows too while the task is blocked by back pressure. */
    private long backlog() {
        double due = dueNow();
        return shares.stream().mapToLong(share -> Math.max(0L, share.due(due) - share.emitted)).sum();
    }

    /** Milliseconds since the oldest record became due that is not emitted; 0 without any. */
    private long oldestDueMs() {
        double due = dueNow();
        long first = shares.stream()
                .filter(share -> share.emitted < share.due(due))
                .mapToLong(OwedSplit::sequenceOfNext)
                .min()
                .orElse(-1);
        return first < 0 ? 0 : Math.max(0, System.currentTimeMillis() - startMs - Math.round(1000 * trace.secondsUntil(first)));
    }

    private double dueNow() {
        return trace.dueAfter((System.currentTimeMillis() - startMs) / 1000.0);
    }

    @Override
    public InputStatus pollNext(ReaderOutput<T> output) {
        long nowNs = System.nanoTime();
        if (nowNs - lookedUpNs >= CLOCK_STEP_NS) {
            dueInAll = dueNow();
            lookedUpNs = nowNs;
        }
        for (int tried = 0; tried < shares.size(); tried++) {
            cursor = (cursor + 1) % shares.size();
            OwedSplit share = shares.get(cursor);
            if (share.emitted < share.due(dueInAll)) {
                if (options.countsIn) {
                    in.inc();
                }
                output.collect(maker.make(share.sequenceOfNext()));
                share.emitted = share.emitted + 1;
                return InputStatus.MORE_AVAILABLE;
            }
        }
        if (options.waitsInPoll) {
            LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(NAP_MS));
            return InputStatus.MORE_AVAILABLE;
        }
        return InputStatus.NOTHING_AVAILABLE;
    }

    @Override
    public CompletableFuture<Void> isAvailable() {
        CompletableFuture<Void> awake = new CompletableFuture<>();
        alarm.schedule(() -> awake.complete(null), NAP_MS, TimeUnit.MILLISECONDS);
        return awake;
    }

    @Override
    public List<OwedSplit> snapshotState(long checkpointId) {
        shown.show(checkpointId, emittedInAll());
        return shares.stream().map(OwedSplit::snapshot).toList();
    }

    @Override
    public void addSplits(List<OwedSplit> assigned) {
        shares.addAll(assigned);
    }

    @Override
    public void notifyNoMoreSplits() {}

    @Override
    public void close() {
        alarm.shutdownNow();
    }
}
