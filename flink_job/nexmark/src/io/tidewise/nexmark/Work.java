package io.tidewise.nexmark;

import org.apache.flink.table.functions.FunctionContext;
import org.apache.flink.table.functions.ScalarFunction;

/** work(value, us): the value, after a wait of so many microseconds, as for a lookup in another system. */
public final class Work extends ScalarFunction {
    private static final long serialVersionUID = 1L;
    private transient Waiting waiting;

    @Override
    public void open(FunctionContext context) {
        waiting = new Waiting();
    }

    public Long eval(Long value, Long us) {
        waiting.waitFor(us);
        return value;
    }

    /** A planner may evaluate a deterministic function as often as it likes, or never. */
    @Override
    public boolean isDeterministic() {
        return false;
    }
}
