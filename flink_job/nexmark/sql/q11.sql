-- q11, user sessions: how many bids a bidder made before a rest of 10 s.
CREATE TABLE results (bidder BIGINT, bid_count BIGINT, window_start TIMESTAMP(3), window_end TIMESTAMP(3))
WITH ('connector' = 'blackhole');
INSERT INTO results
SELECT bidder, work_count(${work-us}), window_start, window_end
FROM SESSION(TABLE bids PARTITION BY bidder, DESCRIPTOR(date_time), INTERVAL '10' SECOND)
GROUP BY bidder, window_start, window_end;
