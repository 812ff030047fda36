-- q5, hot items: the auctions with the most bids in the last 10 s, every 2 s. The maximum of all is one subtask.
CREATE TABLE results (auction BIGINT, bid_count BIGINT) WITH ('connector' = 'blackhole');
CREATE VIEW counts AS
SELECT auction, work_count_merged(${work-us}) AS bid_count, window_start, window_end
FROM HOP(TABLE bids, DESCRIPTOR(date_time), INTERVAL '2' SECOND, INTERVAL '10' SECOND)
GROUP BY auction, window_start, window_end;
INSERT INTO results
SELECT c.auction, c.bid_count
FROM counts AS c JOIN (
  SELECT MAX(bid_count) AS most, window_start, window_end FROM counts GROUP BY window_start, window_end
) AS m ON c.window_start = m.window_start AND c.window_end = m.window_end AND c.bid_count >= m.most;
