package io.tidewise.nexmark;

import java.io.Serializable;
import java.util.Arrays;

/**
 * How many persons, auctions and bids come in turn: 1, 3 and 46 by the benchmark's definition.
 *
 * <p>The sequence is cut into rounds; each begins with its persons, then come its auctions, then its bids. So the
 * newest person and auction of any place in the sequence are known without a state.
 */
final class Proportions implements Serializable {
    private static final long serialVersionUID = 1L;

    final int persons;
    final int auctions;
    final int bids;

    Proportions(int persons, int auctions, int bids) {
        if (persons < 1 || auctions < 1 || bids < 0) {
            throw new IllegalArgumentException("a round needs a person and an auction at least");
        }
        this.persons = persons;
        this.auctions = auctions;
        this.bids = bids;
    }

    /** Reads "1:3:46". */
    static Proportions parse(String text) {
        int[] counts = Arrays.stream(text.split(":")).mapToInt(Integer::parseInt).toArray();
        if (counts.length != 3) {
            throw new IllegalArgumentException("proportions must be persons:auctions:bids, not " + text);
        }
        return new Proportions(counts[0], counts[1], counts[2]);
    }

    private int round() {
        return persons + auctions + bids;
    }

    EventKind kindOf(long sequence) {
        long place = sequence % round();
        if (place < persons) {
            return EventKind.PERSON;
        }
        return place < persons + auctions ? EventKind.AUCTION : EventKind.BID;
    }

    /** Index of the newest person at that place, itself included. */
    long newestPerson(long sequence) {
        long place = sequence % round();
        return sequence / round() * persons + Math.min(place, persons - 1L);
    }

    /** Index of the newest auction at that place, itself included; -1 before the first. */
    long newestAuction(long sequence) {
        long place = sequence % round() - persons;
        long before = sequence / round() * auctions;
        return place < 0 ? before - 1 : before + Math.min(place, auctions - 1L);
    }
}
