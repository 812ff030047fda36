package io.tidewise.nexmark;

import java.util.concurrent.locks.LockSupport;

/**
 * Lets a thread wait so many microseconds per record on average: what is owed is slept in naps of two milliseconds at
 * least, and what a nap took longer is taken off the next, so that waiting costs next to no processor time.
 */
final class Waiting {
    private static final long NAP_NS = 2_000_000;

    private long owedNs;

    void waitFor(long us) {
        owedNs += us * 1000;
        if (owedNs < NAP_NS) {
            return;
        }
        long startNs = System.nanoTime();
        LockSupport.parkNanos(owedNs);
        owedNs -= System.nanoTime() - startNs;
    }
}
