package io.tidewise.nexmark;

import io.tidewise.load.RateTrace;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.Set;
import org.apache.flink.table.data.RowData;

/**
 * How many rows a query gives for the first events of the sequence, computed without Flink: what a sink must have
 * received once a job has worked everything off.
 *
 * <p>Arguments: QUERY EVENTS PROPORTIONS TRACE, for example q3 100000 1:3:1 trace.csv.
 */
public final class ExpectedRows {
    private static final Set<String> STATES = Set.of("OR", "ID", "CA");

    private ExpectedRows() {}

    public static void main(String[] args) throws Exception {
        Proportions proportions = Proportions.parse(args[2]);
        EventMaker maker = new EventMaker(RateTrace.read(Path.of(args[3]), 1.0), 0, proportions);
        Set<Long> sellers = new HashSet<>();
        long rows = 0;
        long events = Long.parseLong(args[1]);
        for (long sequence = 0; sequence < events; sequence++) {
            EventKind kind = proportions.kindOf(sequence);
            if (args[0].equals("q2") ? kind != EventKind.BID : kind == EventKind.BID) {
                continue;
            }
            RowData event = maker.make(sequence);
            switch (kind) {
                case BID -> rows += event.getRow(3, 6).getLong(0) % 123 == 0 ? 1 : 0;
                case PERSON -> {
                    RowData person = event.getRow(1, 7);
                    if (STATES.contains(person.getString(5).toString())) {
                        sellers.add(person.getLong(0));
                    }
                }
                case AUCTION -> {
                    // A seller comes before its auctions in the sequence, so each auction finds it or never will.
                    RowData auction = event.getRow(2, 9);
                    rows += auction.getLong(7) == 10 && sellers.contains(auction.getLong(6)) ? 1 : 0;
                }
            }
        }
        System.out.println(rows);
    }
}
