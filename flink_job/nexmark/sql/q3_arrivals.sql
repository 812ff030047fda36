-- q3 with a sink that counts its rows and their age (`make live`): an auction comes after its seller.
CREATE TABLE results (name STRING, city STRING, state STRING, id BIGINT, created TIMESTAMP(3))
WITH ('connector' = 'tidewise-arrivals');
INSERT INTO results
SELECT p.name, p.city, p.state, work(a.id, ${work-us}), a.created
FROM (SELECT id, seller, category, CAST(date_time AS TIMESTAMP(3)) AS created FROM auctions) AS a
JOIN (SELECT id, name, city, state FROM persons) AS p ON a.seller = p.id
WHERE a.category = 10 AND p.state IN ('OR', 'ID', 'CA');
