-- Between events.sql and a query that goes on from a savepoint: the trace began when the query did.
ALTER TABLE events SET ('start-ms' = '${start-ms}');
