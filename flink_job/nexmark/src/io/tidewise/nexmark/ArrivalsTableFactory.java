package io.tidewise.nexmark;

import java.util.Set;
import org.apache.flink.configuration.ConfigOption;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.DataStreamSink;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.table.api.ValidationException;
import org.apache.flink.table.connector.ChangelogMode;
import org.apache.flink.table.connector.ProviderContext;
import org.apache.flink.table.connector.sink.DataStreamSinkProvider;
import org.apache.flink.table.connector.sink.DynamicTableSink;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.factories.DynamicTableSinkFactory;
import org.apache.flink.table.factories.FactoryUtil;

/** Makes the sink that counts its rows, and how old they are by their column {@code created}, and keeps none. */
public final class ArrivalsTableFactory implements DynamicTableSinkFactory {
    private static final String CREATED = "created";

    @Override
    public String factoryIdentifier() {
        return "tidewise-arrivals";
    }

    @Override
    public Set<ConfigOption<?>> requiredOptions() {
        return Set.of();
    }

    @Override
    public Set<ConfigOption<?>> optionalOptions() {
        return Set.of();
    }

    @Override
    public DynamicTableSink createDynamicTableSink(Context context) {
        FactoryUtil.createTableFactoryHelper(this, context).validate();
        int column = context.getCatalogTable().getResolvedSchema().getColumnNames().indexOf(CREATED);
        if (column < 0) {
            throw new ValidationException("a table of tidewise-arrivals needs a column " + CREATED);
        }
        return new ArrivalsSink(column);
    }

    private static final class ArrivalsSink implements DynamicTableSink {
        private final int column;

        ArrivalsSink(int column) {
            this.column = column;
        }

        @Override
        public ChangelogMode getChangelogMode(ChangelogMode requested) {
            return ChangelogMode.insertOnly();
        }

        @Override
        public SinkRuntimeProvider getSinkRuntimeProvider(Context context) {
            return new DataStreamSinkProvider() {
                @Override
                public DataStreamSink<?> consumeDataStream(ProviderContext provider, DataStream<RowData> rows) {
                    return rows.map(new Arrivals(column))
                            .returns(rows.getType())
                            .name("arrivals")
                            .sinkTo(new DiscardingSink<>())
                            .name("sink");
                }
            };
        }

        @Override
        public DynamicTableSink copy() {
            return new ArrivalsSink(column);
        }

        @Override
        public String asSummaryString() {
            return "arrivals";
        }
    }
}
