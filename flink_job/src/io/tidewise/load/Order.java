package io.tidewise.load;

/** The record that flows through the job (a Flink POJO: public fields, no-argument constructor). */
public final class Order {
    public long sequence;
    public int customer;
    public long amountCents;
    public long dueMs;

    public Order() {}

    Order(long sequence, int customers, long dueMs) {
        this.sequence = sequence;
        this.dueMs = dueMs;
        long mixed = mix(sequence);
        this.customer = (int) Math.floorMod(mixed, (long) customers);
        this.amountCents = 100 + Math.floorMod(mixed >>> 20, 10_000L);
    }

    /** The finaliser of SplitMix64: spreads a sequence evenly, and the same sequence always gives the same order. */
    public static long mix(long value) {
        long z = value + 0x9E3779B97F4A7C15L;
        z = (z ^ (z >>> 30)) * 0xBF58476D1CE4E5B9L;
        z = (z ^ (z >>> 27)) * 0x94D049BB133111EBL;
        return z ^ (z >>> 31);
    }
}
