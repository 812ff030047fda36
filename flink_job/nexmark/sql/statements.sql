-- A statement set: three results of one source, which feeds three vertices at different rates.
CREATE TABLE by_state (state STRING, arrivals BIGINT) WITH ('connector' = 'blackhole');
CREATE TABLE by_category (category BIGINT, opened BIGINT, window_end TIMESTAMP(3)) WITH ('connector' = 'blackhole');
CREATE TABLE by_bidder (bidder BIGINT, bid_count BIGINT, window_end TIMESTAMP(3)) WITH ('connector' = 'blackhole');
INSERT INTO by_state
SELECT state, work_count(${work-us}) FROM persons GROUP BY state;
INSERT INTO by_category
SELECT category, work_count_merged(${work-us}), window_end
FROM TUMBLE(TABLE auctions, DESCRIPTOR(date_time), INTERVAL '10' SECOND)
GROUP BY category, window_start, window_end;
INSERT INTO by_bidder
SELECT bidder, work_count_merged(${work-us}), window_end
FROM TUMBLE(TABLE bids, DESCRIPTOR(date_time), INTERVAL '10' SECOND)
GROUP BY bidder, window_start, window_end;
