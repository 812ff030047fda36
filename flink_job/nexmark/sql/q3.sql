-- q3, local items: who sells in one category in three states. A filter in the source's chain and a join that keeps all.
CREATE TABLE results (name STRING, city STRING, state STRING, id BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO results
SELECT p.name, p.city, p.state, aged(work(a.id, ${work-us}), a.date_time)
FROM auctions AS a JOIN persons AS p ON a.seller = p.id
WHERE a.category = 10 AND p.state IN ('OR', 'ID', 'CA');
