package io.tidewise.nexmark;

import io.tidewise.load.OwedSource;
import io.tidewise.load.RateTrace;
import io.tidewise.load.ReaderOptions;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Set;
import org.apache.flink.configuration.ConfigOption;
import org.apache.flink.configuration.ConfigOptions;
import org.apache.flink.configuration.ReadableConfig;
import org.apache.flink.table.api.ValidationException;
import org.apache.flink.table.connector.source.DynamicTableSource;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.factories.DynamicTableSourceFactory;
import org.apache.flink.table.factories.FactoryUtil;

/** Makes the table of events from the options of its CREATE TABLE; the trace is read where the job is submitted. */
public final class NexmarkTableFactory implements DynamicTableSourceFactory {
    private static final ConfigOption<String> TRACE =
            ConfigOptions.key("trace").stringType().noDefaultValue().withDescription("file of second,rate_per_s");
    private static final ConfigOption<String> PROPORTIONS = ConfigOptions.key("proportions")
            .stringType()
            .defaultValue("1:3:46")
            .withDescription("persons, auctions and bids that come in turn");
    private static final ConfigOption<Long> START_MS = ConfigOptions.key("start-ms")
            .longType()
            .defaultValue(0L)
            .withDescription("epoch ms of the trace's second 0, as before a savepoint; 0: when the job is submitted");
    private static final ConfigOption<Integer> SPLITS =
            ConfigOptions.key("splits").intType().defaultValue(24).withDescription("shares that readers divide");
    private static final ConfigOption<Boolean> PENDING =
            ConfigOptions.key("pending").booleanType().defaultValue(true).withDescription("show pendingRecords");
    private static final ConfigOption<Boolean> COUNT_IN =
            ConfigOptions.key("count-in").booleanType().defaultValue(true).withDescription("count numRecordsIn");
    private static final ConfigOption<Boolean> POLL_WAIT =
            ConfigOptions.key("poll-wait").booleanType().defaultValue(false).withDescription("wait inside pollNext");

    @Override
    public String factoryIdentifier() {
        return "tidewise-nexmark";
    }

    @Override
    public Set<ConfigOption<?>> requiredOptions() {
        return Set.of(TRACE);
    }

    @Override
    public Set<ConfigOption<?>> optionalOptions() {
        return Set.of(PROPORTIONS, START_MS, SPLITS, PENDING, COUNT_IN, POLL_WAIT);
    }

    @Override
    public DynamicTableSource createDynamicTableSource(Context context) {
        FactoryUtil.TableFactoryHelper helper = FactoryUtil.createTableFactoryHelper(this, context);
        helper.validate();
        ReadableConfig given = helper.getOptions();
        ReaderOptions reader = new ReaderOptions(given.get(PENDING), given.get(COUNT_IN), given.get(POLL_WAIT));
        long startMs = given.get(START_MS) > 0 ? given.get(START_MS) : System.currentTimeMillis();
        RateTrace trace = read(given.get(TRACE));
        EventMaker maker = new EventMaker(trace, startMs, Proportions.parse(given.get(PROPORTIONS)));
        OwedSource<RowData> source = new OwedSource<>(trace, startMs, given.get(SPLITS), maker, reader);
        return new NexmarkTableSource(source);
    }

    private static RateTrace read(String file) {
        try {
            return RateTrace.read(Path.of(file), 1.0);
        } catch (IOException error) {
            throw new ValidationException("the trace " + file + " cannot be read", error);
        }
    }
}
