-- q1, currency conversion: each bid with its price in euros.
CREATE TABLE results (auction BIGINT, bidder BIGINT, euros DECIMAL(23, 3), date_time TIMESTAMP(3)) WITH ('connector' = 'blackhole');
INSERT INTO results
SELECT work(auction, ${work-us}), bidder, 0.908 * price, date_time FROM bids;
