package io.tidewise.load;

import org.apache.flink.metrics.MetricGroup;

/** Counts as they were in the last snapshot, as metrics beside its id; 0 before the first. */
final class SnapshotCounts {
    private volatile long id; // both are read by the thread that serves metrics
    private final long[] counts;

    SnapshotCounts(MetricGroup group, String... names) {
        counts = new long[names.length];
        for (int place = 0; place < names.length; place++) {
            int mine = place;
            group.gauge(names[place], () -> read(mine));
        }
        group.gauge("snapshotId", () -> id);
    }

    synchronized void show(long snapshotId, long... values) {
        System.arraycopy(values, 0, counts, 0, counts.length);
        id = snapshotId;
    }

    private synchronized long read(int place) {
        return counts[place];
    }

    static long sum(Iterable<Long> values) {
        long sum = 0;
        for (long value : values) {
            sum += value;
        }
        return sum;
    }
}
