package io.tidewise.load;

import org.apache.flink.metrics.MetricGroup;

/** Age of the record that passed last, when it passed, as the gauge {@code ageMs}: the truth of a record's delay; -1 before the first. */
public final class AgeGauge {
    private volatile long ageMs = -1;

    public AgeGauge(MetricGroup group) {
        group.gauge("ageMs", () -> ageMs);
    }

    /** A record passes that was due at that time, epoch milliseconds. */
    public void note(long dueMs) {
        ageMs = System.currentTimeMillis() - dueMs;
    }
}
