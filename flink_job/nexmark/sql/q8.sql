-- q8, new users: who opened an auction within the 10 s in which they came. One source feeds two aggregates.
CREATE TABLE results (id BIGINT, name STRING, auctions BIGINT, window_start TIMESTAMP(3)) WITH ('connector' = 'blackhole');
INSERT INTO results
SELECT work(p.id, ${work-us} / 4), p.name, a.opened, p.window_start
FROM (
  SELECT id, name, window_start, window_end
  FROM TUMBLE(TABLE persons, DESCRIPTOR(date_time), INTERVAL '10' SECOND)
  GROUP BY id, name, window_start, window_end
) AS p JOIN (
  SELECT seller, work_count_merged(${work-us}) AS opened, window_start, window_end
  FROM TUMBLE(TABLE auctions, DESCRIPTOR(date_time), INTERVAL '10' SECOND)
  GROUP BY seller, window_start, window_end
) AS a ON p.id = a.seller AND p.window_start = a.window_start AND p.window_end = a.window_end;
