package io.tidewise.replay;

import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.JobStatus;
import org.apache.flink.autoscaler.JobAutoScalerContext;
import org.apache.flink.autoscaler.JobAutoScalerImpl;
import org.apache.flink.autoscaler.ReplayClock;
import org.apache.flink.autoscaler.ScalingExecutor;
import org.apache.flink.autoscaler.ScalingMetricEvaluator;
import org.apache.flink.autoscaler.event.AutoScalerEventHandler;
import org.apache.flink.autoscaler.realizer.ScalingRealizer;
import org.apache.flink.autoscaler.state.InMemoryAutoScalerStateStore;
import org.apache.flink.autoscaler.tuning.ConfigChanges;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.metrics.groups.UnregisteredMetricsGroup;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;

/**
 * Apache Flink's own autoscaler, driven by a replay: a line of JSON per cycle comes in, one with what it decided goes
 * out. Jobs are told apart by their name; each has a state of its own.
 */
public final class ReplayAutoscaler {
    private static final ObjectMapper JSON = new ObjectMapper();

    private final ReplayClock clock = new ReplayClock();
    private final ReplayedMetrics metrics = new ReplayedMetrics();
    private final Decisions decisions = new Decisions();
    private final JobAutoScalerImpl<String, JobAutoScalerContext<String>> autoscaler;
    private final Configuration configuration;

    private ReplayAutoscaler(Map<String, String> options) throws ReflectiveOperationException {
        configuration = Configuration.fromMap(options);
        var store = new InMemoryAutoScalerStateStore<String, JobAutoScalerContext<String>>();
        var executor = new ScalingExecutor<>(decisions, store);
        autoscaler =
                new JobAutoScalerImpl<>(metrics, new ScalingMetricEvaluator(), executor, decisions, decisions, store);
        clock.giveTo(autoscaler, metrics, executor);
    }

    /** Reads the options from the first line and a cycle from each further one, until the input ends. */
    public static void main(String[] arguments) throws Exception {
        var answers = new PrintStream(new FileOutputStream(FileDescriptor.out), true, StandardCharsets.UTF_8);
        System.setOut(System.err); // whatever logs must not come between the answers
        try (var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
            var options = new HashMap<String, String>();
            JSON.readTree(lines.readLine()).fields().forEachRemaining(one -> options.put(one.getKey(), one.getValue().asText()));
            var replay = new ReplayAutoscaler(options);
            for (var line = lines.readLine(); line != null; line = lines.readLine()) {
                answers.println(JSON.writeValueAsString(replay.decide(JSON.readTree(line))));
            }
        }
    }

    /** Returns what the autoscaler has asked for so far, whether it did so in this cycle, and its error, if any. */
    private Map<String, Object> decide(JsonNode cycle) throws Exception {
        clock.setMillis(cycle.get("now_ms").asLong());
        metrics.setCycle(cycle);
        decisions.clear();
        var status = cycle.get("running").asBoolean() ? JobStatus.RUNNING : JobStatus.RESTARTING;
        autoscaler.scale(
                new JobAutoScalerContext<>(
                        cycle.get("job").asText(),
                        new JobID(),
                        status,
                        configuration.clone(),
                        new UnregisteredMetricsGroup(),
                        () -> {
                            throw new UnsupportedOperationException("a replay has no REST interface");
                        }));
        return decisions.describe();
    }

    /** Keeps what the autoscaler would have sent, and its errors. */
    private static final class Decisions
            implements ScalingRealizer<String, JobAutoScalerContext<String>>,
                    AutoScalerEventHandler<String, JobAutoScalerContext<String>> {
        private Map<String, String> parallelism = Map.of();
        private boolean scaled;
        private String error;

        void clear() {
            parallelism = Map.of();
            scaled = false;
            error = null;
        }

        Map<String, Object> describe() {
            var found = new HashMap<String, Object>();
            found.put("parallelism", parallelism);
            found.put("scaled", scaled);
            if (error != null) {
                found.put("error", error);
            }
            return found;
        }

        @Override
        public void realizeParallelismOverrides(
                JobAutoScalerContext<String> context, Map<String, String> overrides) {
            parallelism = Map.copyOf(overrides);
        }

        @Override
        public void realizeConfigOverrides(JobAutoScalerContext<String> context, ConfigChanges changes) {
            // memory tuning is off
        }

        @Override
        public void handleEvent(
                JobAutoScalerContext<String> context,
                Type type,
                String reason,
                String message,
                String messageKey,
                Duration interval) {
            scaled |= reason.equals(SCALING_REPORT_REASON);
        }

        @Override
        public void handleException(JobAutoScalerContext<String> context, String reason, Throwable thrown) {
            error = thrown.toString();
        }
    }
}
