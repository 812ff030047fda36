package io.tidewise.load;

import java.util.Map;
import org.apache.flink.api.common.functions.RuntimeContext;
import org.apache.flink.api.java.utils.ParameterTool;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.functions.sink.DiscardingSink;

/** What is called otherwise in Flink 2. */
final class FlinkApi {
    private FlinkApi() {}

    static Map<String, String> readArguments(String[] args) {
        return ParameterTool.fromArgs(args).toMap();
    }

    static int parallelismOf(RuntimeContext context) {
        return context.getNumberOfParallelSubtasks();
    }

    static <T> void discard(DataStream<T> stream, String name) {
        stream.addSink(new DiscardingSink<>()).name(name).uid(name);
    }

    static int countSubtasks(RuntimeContext context) {
        return context.getNumberOfParallelSubtasks();
    }
}
