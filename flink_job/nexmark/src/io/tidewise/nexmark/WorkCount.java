package io.tidewise.nexmark;

import org.apache.flink.table.functions.AggregateFunction;
import org.apache.flink.table.functions.FunctionContext;

/**
 * Counts records and waits. {@code work_count(us)} waits per record counted; {@code work_count_merged(us)} waits per
 * partial count that comes from a local aggregate, so that the global aggregate is the costly one.
 */
public final class WorkCount extends AggregateFunction<Long, WorkCount.Count> {
    private static final long serialVersionUID = 1L;

    /** A count; {@code isPartial} until it is merged for the first time. */
    public static final class Count {
        public long records;
        public long waitUs;
        public boolean isPartial;
    }

    private final boolean waitsAtMerge;
    private transient Waiting waiting;

    public WorkCount(boolean waitsAtMerge) {
        this.waitsAtMerge = waitsAtMerge;
    }

    @Override
    public void open(FunctionContext context) {
        waiting = new Waiting();
    }

    @Override
    public Count createAccumulator() {
        return new Count();
    }

    public void accumulate(Count count, Long us) {
        count.records++;
        count.waitUs = us;
        count.isPartial = true;
        if (!waitsAtMerge) {
            waiting.waitFor(us);
        }
    }

    public void merge(Count count, Iterable<Count> others) {
        for (Count other : others) {
            count.records += other.records;
            if (waitsAtMerge && other.isPartial) {
                waiting.waitFor(other.waitUs);
            }
        }
    }

    public void resetAccumulator(Count count) {
        count.records = 0;
        count.isPartial = false;
    }

    @Override
    public Long getValue(Count count) {
        return count.records;
    }
}
