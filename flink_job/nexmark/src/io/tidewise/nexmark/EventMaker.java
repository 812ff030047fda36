package io.tidewise.nexmark;

import io.tidewise.load.Order;
import io.tidewise.load.RateTrace;
import io.tidewise.load.RecordMaker;
import org.apache.flink.table.data.GenericRowData;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.data.StringData;
import org.apache.flink.table.data.TimestampData;

/**
 * Persons, auctions and bids of an online auction house, after the published definition of Nexmark (Tucker et al.,
 * "NEXMark: A Benchmark for Queries over Data Streams", and the queries of Apache Beam that made it known).
 *
 * <p>Hot keys: 3 of 4 auctions are of the hot seller, half of the bids go to the hot auction, 3 of 4 bids come from the
 * hot bidder; the hot one changes with each hundred persons or auctions. All others are drawn evenly from the newest.
 * An event's time is the time at which it was due, as that of a record that waits in a topic.
 */
final class EventMaker implements RecordMaker<RowData> {
    private static final long serialVersionUID = 1L;
    private static final long FIRST_ID = 1000;
    private static final int HOT_STRETCH = 100;
    private static final int ACTIVE_PERSONS = 1000;
    private static final int OPEN_AUCTIONS = 100;
    private static final int FIRST_CATEGORY = 10;
    private static final int CATEGORIES = 5;
    private static final long AUCTION_MS = 20_000;
    private static final String[] STATES = {"AZ", "CA", "ID", "OR", "WA", "WY"};
    private static final String[] CITIES = {"Phoenix", "Fresno", "Boise", "Portland", "Tacoma", "Casper", "Bend"};
    private static final String[] FIRST_NAMES = {"Ada", "Bo", "Cleo", "Dan", "Eva", "Finn", "Gia", "Hal", "Ida"};
    private static final String[] LAST_NAMES = {"Abel", "Brook", "Cruz", "Dunn", "Ellis", "Ford", "Gray", "Hunt"};
    private static final String[] CHANNELS = {"search", "social", "mail", "direct"};

    private final RateTrace trace;
    private final long startMs;
    private final Proportions proportions;

    EventMaker(RateTrace trace, long startMs, Proportions proportions) {
        this.trace = trace;
        this.startMs = startMs;
        this.proportions = proportions;
    }

    @Override
    public RowData make(long sequence) {
        EventKind kind = proportions.kindOf(sequence);
        Draw draw = new Draw(sequence);
        TimestampData at = TimestampData.fromEpochMillis(startMs + Math.round(1000 * trace.secondsUntil(sequence)));
        GenericRowData event = new GenericRowData(5);
        event.setField(0, kind.ordinal());
        switch (kind) {
            case PERSON -> event.setField(1, person(sequence, draw));
            case AUCTION -> event.setField(2, auction(sequence, draw, at));
            case BID -> event.setField(3, bid(sequence, draw));
        }
        event.setField(4, at);
        return event;
    }

    private GenericRowData person(long sequence, Draw draw) {
        String first = draw.oneOf(FIRST_NAMES);
        String last = draw.oneOf(LAST_NAMES);
        return GenericRowData.of(
                FIRST_ID + proportions.newestPerson(sequence),
                text(first + " " + last),
                text(first + "@" + last + ".example"),
                text(String.format("%016d", draw.below(10_000_000_000_000_000L))),
                text(draw.oneOf(CITIES)),
                text(draw.oneOf(STATES)),
                text(""));
    }

    private GenericRowData auction(long sequence, Draw draw, TimestampData at) {
        long initial = price(draw);
        return GenericRowData.of(
                FIRST_ID + proportions.newestAuction(sequence),
                text("item " + draw.below(10_000)),
                text("as good as new"),
                initial,
                initial + price(draw),
                TimestampData.fromEpochMillis(at.getMillisecond() + draw.below(AUCTION_MS)),
                personId(sequence, draw, 0),
                (long) FIRST_CATEGORY + draw.below(CATEGORIES),
                text(""));
    }

    private GenericRowData bid(long sequence, Draw draw) {
        String channel = draw.oneOf(CHANNELS);
        long newest = proportions.newestAuction(sequence);
        long auction = draw.below(2) == 0 ? newest - newest % HOT_STRETCH : newest - draw.below(Math.min(newest + 1, OPEN_AUCTIONS));
        return GenericRowData.of(
                FIRST_ID + auction,
                personId(sequence, draw, 1),
                price(draw),
                text(channel),
                text("https://" + channel + ".example/item"),
                text(""));
    }

    /** The hot person of the moment (three times in four), or one of the newest. */
    private long personId(long sequence, Draw draw, int place) {
        long newest = proportions.newestPerson(sequence);
        if (draw.below(4) > 0) {
            return FIRST_ID + Math.min(newest, newest - newest % HOT_STRETCH + place);
        }
        return FIRST_ID + newest - draw.below(Math.min(newest + 1, ACTIVE_PERSONS));
    }

    /** Cents between 100 and 100,000,000, evenly over the orders of magnitude. */
    private static long price(Draw draw) {
        return Math.round(100 * Math.pow(10, 6 * draw.share()));
    }

    private static StringData text(String value) {
        return StringData.fromString(value);
    }

    /** Draws that follow from the place in the sequence alone. */
    private static final class Draw {
        private long state;

        Draw(long sequence) {
            state = Order.mix(sequence);
        }

        long below(long bound) {
            state = Order.mix(state);
            return Math.floorMod(state, bound);
        }

        double share() {
            state = Order.mix(state);
            return (state >>> 11) * 0x1.0p-53;
        }

        String oneOf(String[] values) {
            return values[(int) below(values.length)];
        }
    }
}
