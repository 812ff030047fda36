package io.tidewise.nexmark;

import io.tidewise.load.OwedSource;
import org.apache.flink.table.connector.ChangelogMode;
import org.apache.flink.table.connector.source.DynamicTableSource;
import org.apache.flink.table.connector.source.ScanTableSource;
import org.apache.flink.table.connector.source.SourceProvider;
import org.apache.flink.table.data.RowData;

/** The events as a table that is only appended to. */
final class NexmarkTableSource implements ScanTableSource {
    private final OwedSource<RowData> source;

    NexmarkTableSource(OwedSource<RowData> source) {
        this.source = source;
    }

    @Override
    public ChangelogMode getChangelogMode() {
        return ChangelogMode.insertOnly();
    }

    @Override
    public ScanRuntimeProvider getScanRuntimeProvider(ScanContext context) {
        return SourceProvider.of(source);
    }

    @Override
    public DynamicTableSource copy() {
        return new NexmarkTableSource(source);
    }

    @Override
    public String asSummaryString() {
        return "Nexmark events";
    }
}
