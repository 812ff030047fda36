package io.tidewise.load;

import java.util.Map;
import org.apache.flink.api.common.functions.RuntimeContext;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.util.ParameterTool;

/** What is called otherwise in Flink 1. */
final class FlinkApi {
    private FlinkApi() {}

    static Map<String, String> readArguments(String[] args) {
        return ParameterTool.fromArgs(args).toMap();
    }

    static int parallelismOf(RuntimeContext context) {
        return context.getTaskInfo().getNumberOfParallelSubtasks();
    }

    static <T> void discard(DataStream<T> stream, String name) {
        stream.sinkTo(new DiscardingSink<>()).name(name).uid(name);
    }

    static int countSubtasks(RuntimeContext context) {
        return context.getTaskInfo().getNumberOfParallelSubtasks();
    }
}
