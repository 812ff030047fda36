package io.tidewise.replay;

import java.time.Instant;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.Map;
import org.apache.flink.autoscaler.JobAutoScalerContext;
import org.apache.flink.autoscaler.ScalingMetricCollector;
import org.apache.flink.autoscaler.metrics.FlinkMetric;
import org.apache.flink.autoscaler.state.AutoScalerStateStore;
import org.apache.flink.autoscaler.topology.IOMetrics;
import org.apache.flink.autoscaler.topology.JobTopology;
import org.apache.flink.autoscaler.topology.ShipStrategy;
import org.apache.flink.autoscaler.topology.VertexInfo;
import org.apache.flink.runtime.jobgraph.JobVertexID;
import org.apache.flink.runtime.rest.messages.job.JobDetailsInfo;
import org.apache.flink.runtime.rest.messages.job.metrics.AggregatedMetric;
import org.apache.flink.runtime.rest.messages.job.metrics.Metric;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;

/** A collector that is given what Flink's REST interface would have answered. */
final class ReplayedMetrics extends ScalingMetricCollector<String, JobAutoScalerContext<String>> {
    private JsonNode cycle;

    /** Sets the input of the next cycle. */
    void setCycle(JsonNode next) {
        cycle = next;
    }

    @Override
    public JobDetailsInfo getJobDetailsInfo(JobAutoScalerContext<String> context, java.time.Duration timeout) {
        return null; // the two methods below are all that read it
    }

    @Override
    protected Instant getJobRunningTs(JobDetailsInfo details) {
        return Instant.ofEpochMilli(cycle.get("running_since_ms").asLong());
    }

    @Override
    protected JobTopology getJobTopology(
            JobAutoScalerContext<String> context,
            AutoScalerStateStore<String, JobAutoScalerContext<String>> store,
            JobDetailsInfo details) {
        var vertices = new VertexInfo[cycle.get("vertices").size()];
        for (int place = 0; place < vertices.length; place++) {
            var vertex = cycle.get("vertices").get(place);
            var inputs = new HashMap<JobVertexID, ShipStrategy>();
            vertex.get("inputs").forEach(one -> inputs.put(idOf(one), ShipStrategy.REBALANCE));
            var counters =
                    new IOMetrics(
                            Math.round(vertex.get("records_in").asDouble()),
                            Math.round(vertex.get("records_out").asDouble()),
                            vertex.get("busy_ms").asDouble());
            vertices[place] =
                    new VertexInfo(
                            idOf(vertex.get("id")),
                            inputs,
                            vertex.get("parallelism").asInt(),
                            vertex.get("max_parallelism").asInt(),
                            false,
                            counters);
        }
        return new JobTopology(vertices);
    }

    @Override
    protected Map<JobVertexID, Map<String, FlinkMetric>> queryFilteredMetricNames(
            JobAutoScalerContext<String> context, JobTopology topology) {
        var names = new HashMap<JobVertexID, Map<String, FlinkMetric>>();
        topology.getVerticesInTopologicalOrder().forEach(id -> names.put(id, Map.of()));
        return names;
    }

    @Override
    protected Map<JobVertexID, Map<FlinkMetric, AggregatedMetric>> queryAllAggregatedMetrics(
            JobAutoScalerContext<String> context, Map<JobVertexID, Map<String, FlinkMetric>> names) {
        var found = new HashMap<JobVertexID, Map<FlinkMetric, AggregatedMetric>>();
        for (var vertex : cycle.get("vertices")) {
            var metrics = new EnumMap<FlinkMetric, AggregatedMetric>(FlinkMetric.class);
            metrics.put(FlinkMetric.BUSY_TIME_PER_SEC, same(vertex.get("busy_ms_per_s").asDouble()));
            if (vertex.get("inputs").isEmpty()) {
                metrics.put(
                        FlinkMetric.SOURCE_TASK_NUM_RECORDS_IN_PER_SEC,
                        same(vertex.get("records_in_per_s").asDouble()));
                metrics.put(FlinkMetric.SOURCE_TASK_NUM_RECORDS_IN, same(vertex.get("records_in").asDouble()));
                metrics.put(FlinkMetric.PENDING_RECORDS, same(vertex.get("pending_records").asDouble()));
                metrics.put(
                        FlinkMetric.BACKPRESSURE_TIME_PER_SEC, same(vertex.get("backpressured_ms_per_s").asDouble()));
            }
            found.put(idOf(vertex.get("id")), metrics);
        }
        return found;
    }

    @Override
    protected Map<FlinkMetric, Metric> queryJmMetrics(JobAutoScalerContext<String> context) {
        return Map.of();
    }

    @Override
    protected Map<FlinkMetric, AggregatedMetric> queryTmMetrics(JobAutoScalerContext<String> context) {
        // A heap that is never full and no garbage collection: the replay has no memory.
        return Map.of(FlinkMetric.HEAP_MEMORY_MAX, same(100.0), FlinkMetric.HEAP_MEMORY_USED, same(10.0),
                FlinkMetric.TOTAL_GC_TIME_PER_SEC, same(0.0));
    }

    private static AggregatedMetric same(double value) {
        return new AggregatedMetric("replayed", value, value, value, value, 0.0);
    }

    private static JobVertexID idOf(JsonNode hexadecimal) {
        return JobVertexID.fromHexString(hexadecimal.asText());
    }
}
