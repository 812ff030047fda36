-- q7, highest bid: the bids with the highest price of each 10 s.
CREATE TABLE results (auction BIGINT, bidder BIGINT, price BIGINT, date_time TIMESTAMP(3)) WITH ('connector' = 'blackhole');
INSERT INTO results
SELECT b.auction, b.bidder, b.price, b.date_time
FROM (SELECT work(auction, ${work-us}) AS auction, bidder, price, date_time FROM bids) AS b JOIN (
  SELECT MAX(price) AS highest, window_end
  FROM TUMBLE(TABLE bids, DESCRIPTOR(date_time), INTERVAL '10' SECOND)
  GROUP BY window_start, window_end
) AS m ON b.price = m.highest AND b.date_time BETWEEN m.window_end - INTERVAL '10' SECOND AND m.window_end;
