package io.tidewise.load;

import java.io.Serializable;

/**
 * How a reader behaves towards Flink.
 *
 * <p>{@code showsPending}: the backlog is shown as pendingRecords. {@code countsIn}: what is read is counted as
 * numRecordsIn, as the readers of FLIP-27 do. {@code waitsInPoll}: pollNext waits for the next record in the place of
 * saying that nothing is available, so that the task is busy at any rate.
 */
public final class ReaderOptions implements Serializable {
    private static final long serialVersionUID = 1L;

    final boolean showsPending;
    final boolean countsIn;
    final boolean waitsInPoll;

    public ReaderOptions(boolean showsPending, boolean countsIn, boolean waitsInPoll) {
        this.showsPending = showsPending;
        this.countsIn = countsIn;
        this.waitsInPoll = waitsInPoll;
    }
}
