import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.serialization.SimpleStringSchema;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;

/** Reads a topic and drops it; commits no offsets. Arguments: bootstrap servers, topic. */
public final class KafkaJob {
    private KafkaJob() {}

    public static void main(String[] args) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        env.disableOperatorChaining();
        env.setParallelism(1);
        KafkaSource<String> source = KafkaSource.<String>builder()
                .setBootstrapServers(args[0])
                .setTopics(args[1])
                .setGroupId("kafka-job")
                .setProperty("commit.offsets.on.checkpoint", "false")
                .setProperty("enable.auto.commit", "false")
                .setStartingOffsets(OffsetsInitializer.earliest())
                .setValueOnlyDeserializer(new SimpleStringSchema())
                .build();
        env.fromSource(source, WatermarkStrategy.noWatermarks(), "orders")
                .uid("orders")
                .map(text -> text)
                .returns(String.class)
                .name("enrich")
                .uid("enrich")
                .sinkTo(new DiscardingSink<>())
                .name("sink")
                .uid("sink");
        env.execute("kafka-orders");
    }
}
