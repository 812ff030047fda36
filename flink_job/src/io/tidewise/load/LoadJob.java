package io.tidewise.load;

import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple3;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/**
 * Orders in one of five forms.
 *
 * <p>plain: Source: orders, enrich, aggregate, sink, each a vertex of its own, since between any two of them records
 * are rebalanced or keyed.
 *
 * <p>counted: the same, and the sink's vertex counts what it gets.
 *
 * <p>chained: the same source, a filter, enrich and the sink, all of them in one vertex.
 *
 * <p>side-outputs: a source vertex that filters and routes in its chain; express orders go over a side output to a
 * vertex of their own, the others to enrich; each of the two has its sink in its chain.
 *
 * <p>counted-side-outputs: the same, and each sink's chain counts what it gets, and how old it is.
 *
 * <p>Arguments: --trace FILE (second,rate_per_s; read where the job is submitted, that is on the JobManager)
 * [--compression 1] [--cost-us 100] [--wait-us 0] [--customers 1000] [--emit-every 10] [--splits 12]
 * [--max-parallelism 128] [--parallelism 1] [--job-name orders-load] [--warm-up-sources 0] [--warm-up-orders 1000]
 * [--form plain] [--chaining on] [--keep-one-in 1] [--express-one-in 10] [--counts out] [--pending on]
 * [--fails-above 1000000] [--checkpoints on] [--behaviour FILE].
 *
 * <p>With --counts in the source counts what it takes in as numRecordsIn, as Kafka's does; else nothing counts in it but
 * Flink's numRecordsOut of the source operator.
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
        String chaining = oneOf(given, "chaining", "on", "off");
        if (chaining.equals("off")) {
            env.disableOperatorChaining();
        }
        if (oneOf(given, "checkpoints", "on", "off").equals("off")) {
            env.getCheckpointConfig().disableCheckpointing();
        }
        env.setParallelism(number(given, "parallelism", 1));
        env.setMaxParallelism(number(given, "max-parallelism", 128));

        // The start is fixed here and not in the source: a job that fails before its first checkpoint still owes
        // everything since it was submitted.
        long startMs = System.currentTimeMillis();
        int customers = number(given, "customers", 1000);
        boolean showsPending = oneOf(given, "pending", "on", "off").equals("on");
        boolean countsIn = oneOf(given, "counts", "out", "in").equals("in");
        OwedSource<Order> source = new OwedSource<>(
                trace,
                startMs,
                number(given, "splits", 12),
                sequence -> new Order(sequence, customers, startMs + Math.round(1000 * trace.secondsUntil(sequence))),
                new ReaderOptions(showsPending, countsIn, false));
        DataStream<Order> orders = env.fromSource(
                        source, WatermarkStrategy.noWatermarks(), "orders", TypeInformation.of(Order.class))
                .uid("orders");
        for (int place = 0; place < number(given, "warm-up-sources", 0); place++) {
            orders = orders.union(warmUp(env, place, number(given, "warm-up-orders", 1000), customers));
        }
        Behaviour behaviour = new Behaviour(given.getOrDefault("behaviour", ""));
        Enrich enrich = new Enrich(number(given, "cost-us", 100), number(given, "wait-us", 0), number(given, "fails-above", 1_000_000), behaviour);
        Totals totals = new Totals(number(given, "emit-every", 10), behaviour);
        switch (oneOf(given, "form", "plain", "counted", "chained", "side-outputs", "counted-side-outputs")) {
            case "counted" -> FlinkApi.discard(
                    aggregate(orders, enrich, totals).map(new Received()).name("received").uid("received"), "sink");
            case "chained" -> FlinkApi.discard(keep(orders, given).map(enrich).name("enrich").uid("enrich"), "sink");
            case "side-outputs" -> sendExpressAside(route(orders, given), enrich);
            case "counted-side-outputs" -> countBothWays(route(orders, given), enrich);
            default -> FlinkApi.discard(aggregate(orders, enrich, totals), "sink");
        }
        env.execute(given.getOrDefault("job-name", "orders-load"));
    }

    private static DataStream<Tuple3<Integer, Long, Long>> aggregate(
            DataStream<Order> orders, Enrich enrich, Totals totals) {
        // Rebalance, never forward: a forward edge sends everything to one subtask once the two ends are scaled apart.
        return orders.rebalance()
                .map(enrich)
                .name("enrich")
                .uid("enrich")
                .keyBy(order -> order.customer, Types.INT)
                .process(totals)
                .returns(Types.TUPLE(Types.INT, Types.LONG, Types.LONG))
                .name("aggregate")
                .uid("aggregate")
                .rebalance();
    }

    private static DataStream<Order> keep(DataStream<Order> orders, Map<String, String> given) {
        int oneIn = number(given, "keep-one-in", 1);
        return orders.filter(order -> order.sequence % oneIn == 0).name("keep").uid("keep");
    }

    private static SingleOutputStreamOperator<Order> route(DataStream<Order> orders, Map<String, String> given) {
        return keep(orders, given).process(new Route(number(given, "express-one-in", 10))).name("route").uid("route");
    }

    private static void sendExpressAside(SingleOutputStreamOperator<Order> routed, Enrich enrich) {
        FlinkApi.discard(
                routed.rebalance().map(enrich).name("enrich").uid("enrich").map(new Aged()).name("aged").uid("aged"), "sink");
        DataStream<Order> express = routed.getSideOutput(Route.EXPRESS)
                .rebalance()
                .map(order -> order)
                .returns(Order.class)
                .name("express")
                .uid("express");
        FlinkApi.discard(express, "express sink");
    }

    private static void countBothWays(SingleOutputStreamOperator<Order> routed, Enrich enrich) {
        DataStream<Order> enriched = routed.rebalance().map(enrich).name("enrich").uid("enrich");
        FlinkApi.discard(enriched.map(new OrderArrivals()).name("arrivals").uid("arrivals"), "sink");
        DataStream<Order> express = routed.getSideOutput(Route.EXPRESS)
                .rebalance()
                .map(new OrderArrivals())
                .name("express")
                .uid("express");
        FlinkApi.discard(express, "express sink");
    }

    private static String oneOf(Map<String, String> given, String name, String... allowed) {
        String chosen = given.getOrDefault(name, allowed[0]);
        if (!List.of(allowed).contains(chosen)) {
            throw new IllegalArgumentException("--" + name + " is one of " + List.of(allowed) + ", not " + chosen);
        }
        return chosen;
    }

    private static int number(Map<String, String> given, String name, int otherwise) {
        return Integer.parseInt(given.getOrDefault(name, String.valueOf(otherwise)));
    }

    private static DataStream<Order> warmUp(StreamExecutionEnvironment env, int place, int count, int customers) {
        return env.fromSequence(1, count)
                .name("warm-up")
                .uid("warm-up-" + place)
                .rebalance()
                .map(sequence -> new Order(sequence, customers, System.currentTimeMillis()))
                .returns(Order.class)
                .name("warm-up orders")
                .uid("warm-up-orders-" + place);
    }
}
