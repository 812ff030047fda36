package io.tidewise.nexmark;

import io.tidewise.load.ArrivalCounts;
import org.apache.flink.table.data.RowData;

/** Counts the rows that reach the sink; they became due at the time in the column {@code created}. */
final class Arrivals extends ArrivalCounts<RowData> {
    private static final long serialVersionUID = 1L;

    private final int column;

    Arrivals(int column) {
        this.column = column;
    }

    @Override
    protected long dueMs(RowData row) {
        return row.getTimestamp(column, 3).getMillisecond();
    }
}
