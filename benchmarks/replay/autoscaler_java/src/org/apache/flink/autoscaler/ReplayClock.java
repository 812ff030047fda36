package org.apache.flink.autoscaler;

import java.time.Clock;
import java.time.Instant;
import java.time.ZoneId;
import java.time.ZoneOffset;

/** The replay's clock. It stands in the autoscaler's package, since the setters of its clocks are not public. */
public final class ReplayClock extends Clock {
    private Instant now = Instant.EPOCH;

    /** Sets the time. */
    public void setMillis(long epochMillis) {
        now = Instant.ofEpochMilli(epochMillis);
    }

    /** Gives this clock to all parts of an autoscaler that read the time. */
    public void giveTo(
            JobAutoScalerImpl<?, ?> autoscaler, ScalingMetricCollector<?, ?> collector, ScalingExecutor<?, ?> executor)
            throws ReflectiveOperationException {
        autoscaler.setClock(this);
        collector.setClock(this);
        var field = ScalingExecutor.class.getDeclaredField("jobVertexScaler");
        field.setAccessible(true);
        ((JobVertexScaler<?, ?>) field.get(executor)).setClock(this);
    }

    @Override
    public ZoneId getZone() {
        return ZoneOffset.UTC;
    }

    @Override
    public Clock withZone(ZoneId zone) {
        return this;
    }

    @Override
    public Instant instant() {
        return now;
    }
}
