"""Names that Flink SQL gives to jobs and operators, short and with ``simplify-operator-name-enabled = false``."""

from __future__ import annotations

DATAGEN = "Source: datagen[76] -> Calc[77] -> LocalWindowAggregate[78]"
WINDOW = "GlobalWindowAggregate[25] -> (Calc[26], Calc[28] -> LocalWindowAggregate[29])"
JOIN = "WindowJoin[33] -> Calc[34] -> q8_sink[35]: Writer"
_SCAN = (
    "Source: TableSourceScan(table=[[default_catalog, default_database, datagen]], "
    "fields=[event_type, person, auction, bid])"
)
_TIME = "CASE((event_type = 0), person.dateTime, (event_type = 1), auction.dateTime, bid.dateTime) AS dateTime"
_MARK = "WatermarkAssigner(rowtime=[dateTime], watermark=[(dateTime - 4000:INTERVAL SECOND)])"
LONG_SOURCE = (
    f"{_SCAN} -> Calc(select=[event_type, bid, {_TIME}]) -> {_MARK} -> "
    "Calc(select=[bid.bidder AS bidder, bid.channel AS channel, bid.price AS bid_cost, dateTime, extra], "
    "where=[(event_type = 2)])"
)
"""474 letters."""
_SESSION = (
    "GroupWindowAggregate(groupBy=[bidder], window=[SessionGroupWindow('w$, dateTime, 10000)], "
    "properties=[w$start, w$end, w$rowtime, w$proctime], select=[bidder, COUNT(*) AS bid_count, start('w$) AS w$start, "
    "end('w$) AS w$end, rowtime('w$) AS w$rowtime, proctime('w$) AS w$proctime])"
)
LONG_SESSION = (
    f"{_SESSION} -> Calc(select=[bidder, bid_count, extra, w$start AS starttime, w$end AS end_time]) -> "
    "Sink: Sink(table=[default_catalog.default_database.q11_sink])"
)
"""428 letters."""
OPERATORS = (DATAGEN, WINDOW, JOIN, LONG_SOURCE, LONG_SESSION)
INSERT = "insert-into_default_catalog.default_database.q8_sink"
STATEMENT_SET = ",".join([INSERT, *(f"default_catalog.default_database.{name}_sink" for name in ("q5", "q11"))])
"""Default names of a job with one statement, and with three."""
