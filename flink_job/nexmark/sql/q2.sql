-- q2, selection: the bids on some auctions. All of it is one vertex.
CREATE TABLE results (auction BIGINT, price BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO results
SELECT auction, aged(price, date_time) FROM bids WHERE MOD(work(auction, ${work-us}), 123) = 0;
