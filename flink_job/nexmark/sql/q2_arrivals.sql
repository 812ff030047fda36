-- q2 with a sink that counts its rows and their age (`make live`).
CREATE TABLE results (auction BIGINT, price BIGINT, created TIMESTAMP(3)) WITH ('connector' = 'tidewise-arrivals');
INSERT INTO results
SELECT auction, price, CAST(date_time AS TIMESTAMP(3)) FROM bids WHERE MOD(work(auction, ${work-us}), 123) = 0;
