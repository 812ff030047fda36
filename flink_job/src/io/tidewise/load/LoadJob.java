package io.tidewise.load;

import java.nio.file.Path;
import java.util.Map;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple3;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/**
 * Source: orders -> enrich -> aggregate -> sink, each a vertex of its own.
 *
 * <p>Arguments: --trace FILE (second,rate_per_s; read where the job is submitted, that is on the JobManager)
 * [--compression 1] [--cost-us 100] [--wait-us 0] [--customers 1000] [--emit-every 10] [--splits 12]
 * [--max-parallelism 128] [--parallelism 1] [--job-name orders-load] [--warm-up-sources 0] [--warm-up-orders 1000].
 *
 * <p>Each warm-up source sends so many orders and finishes; all of them have the same name.
 */
public final class LoadJob {
    private LoadJob() {}

    public static void main(String[] args) throws Exception {
        Map<String, String> given = FlinkApi.readArguments(args);
        RateTrace trace = RateTrace.read(
                Path.of(given.get("trace")), Double.parseDouble(given.getOrDefault("compression", "1")));
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        env.disableOperatorChaining();
        env.setParallelism(number(given, "parallelism", 1));
        env.setMaxParallelism(number(given, "max-parallelism", 128));

        // The start is fixed here and not in the source: a job that fails before its first checkpoint still owes
        // everything since it was submitted.
        int customers = number(given, "customers", 1000);
        OwedSource<Order> source = new OwedSource<>(
                trace,
                System.currentTimeMillis(),
                number(given, "splits", 12),
                sequence -> new Order(sequence, customers),
                new ReaderOptions(true, false, false));
        DataStream<Order> orders = env.fromSource(
                        source, WatermarkStrategy.noWatermarks(), "orders", TypeInformation.of(Order.class))
                .uid("orders");
        for (int place = 0; place < number(given, "warm-up-sources", 0); place++) {
            orders = orders.union(warmUp(env, place, number(given, "warm-up-orders", 1000), customers));
        }
        // Rebalance, never forward: a forward edge sends everything to one subtask once the two ends are scaled apart.
        DataStream<Tuple3<Integer, Long, Long>> totals = orders.rebalance()
                .map(new Enrich(number(given, "cost-us", 100), number(given, "wait-us", 0)))
                .name("enrich")
                .uid("enrich")
                .keyBy(order -> order.customer, Types.INT)
                .process(new Totals(number(given, "emit-every", 10)))
                .returns(Types.TUPLE(Types.INT, Types.LONG, Types.LONG))
                .name("aggregate")
                .uid("aggregate");
        FlinkApi.discard(totals.rebalance());
        env.execute(given.getOrDefault("job-name", "orders-load"));
    }

    private static int number(Map<String, String> given, String name, int otherwise) {
        return Integer.parseInt(given.getOrDefault(name, String.valueOf(otherwise)));
    }

    private static DataStream<Order> warmUp(StreamExecutionEnvironment env, int place, int count, int customers) {
        return env.fromSequence(1, count)
                .name("warm-up")
                .uid("warm-up-" + place)
                .rebalance()
                .map(sequence -> new Order(sequence, customers))
                .returns(Order.class)
                .name("warm-up orders")
                .uid("warm-up-orders-" + place);
    }
}
