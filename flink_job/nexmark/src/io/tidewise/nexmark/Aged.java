package io.tidewise.nexmark;

import io.tidewise.load.AgeGauge;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import org.apache.flink.table.functions.FunctionContext;
import org.apache.flink.table.functions.ScalarFunction;

/** aged(value, time): the value, while the gauge {@code ageMs} shows how old its event is in front of the sink. */
public final class Aged extends ScalarFunction {
    private static final long serialVersionUID = 1L;
    private transient AgeGauge gauge;

    @Override
    public void open(FunctionContext context) {
        gauge = new AgeGauge(context.getMetricGroup());
    }

    public Long eval(Long value, LocalDateTime time) {
        gauge.note(time.toInstant(ZoneOffset.UTC).toEpochMilli());
        return value;
    }

    /** A planner may evaluate a deterministic function as often as it likes, or never. */
    @Override
    public boolean isDeterministic() {
        return false;
    }
}
