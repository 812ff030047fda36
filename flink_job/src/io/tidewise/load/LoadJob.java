package io.tidewise.load;

import java.nio.file.Path;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple3;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.util.ParameterTool;

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
        ParameterTool given = ParameterTool.fromArgs(args);
        RateTrace trace = RateTrace.read(Path.of(given.getRequired("trace")), given.getDouble("compression", 1.0));
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        env.disableOperatorChaining();
        env.setParallelism(given.getInt("parallelism", 1));
        env.setMaxParallelism(given.getInt("max-parallelism", 128));

        // The start is fixed here and not in the source: a job that fails before its first checkpoint still owes
        // everything since it was submitted.
        int customers = given.getInt("customers", 1000);
        OwedSource source = new OwedSource(trace, System.currentTimeMillis(), given.getInt("splits", 12), customers);
        DataStream<Order> orders = env.fromSource(
                        source, WatermarkStrategy.noWatermarks(), "orders", TypeInformation.of(Order.class))
                .uid("orders");
        for (int place = 0; place < given.getInt("warm-up-sources", 0); place++) {
            orders = orders.union(warmUp(env, place, given.getInt("warm-up-orders", 1000), customers));
        }
        // Rebalance, never forward: a forward edge sends everything to one subtask once the two ends are scaled apart.
        DataStream<Tuple3<Integer, Long, Long>> totals = orders.rebalance()
                .map(new Enrich(given.getLong("cost-us", 100), given.getLong("wait-us", 0)))
                .name("enrich")
                .uid("enrich")
                .keyBy(order -> order.customer, Types.INT)
                .process(new Totals(given.getInt("emit-every", 10)))
                .returns(Types.TUPLE(Types.INT, Types.LONG, Types.LONG))
                .name("aggregate")
                .uid("aggregate");
        totals.rebalance().sinkTo(new DiscardingSink<>()).name("sink").uid("sink");
        env.execute(given.get("job-name", "orders-load"));
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
