SELECT /*+ BROADCAST(u) */ a.id, u.v FROM a JOIN u ON a.id = u.id
SELECT /*+ REPARTITION(4, k), COALESCE(2) */ k, v FROM a
SELECT /*+ MERGE(a, u) */ /*+ SHUFFLE_HASH(u) */ a.k FROM a JOIN u ON a.k = u.k
SELECT /*+ index */ k FROM a
SELECT /*+ leading(a) index */ k FROM a
SELECT /*+ set(t) */ k FROM a
SELECT /*+ map(t) struct(x) array(y) */ k FROM a
SELECT /*+ BROADCAST(a) it is small */ k FROM a
SELECT /*+ BROADCAST(a) /* why */ */ k FROM a
SELECT /*+ IDENTIFIER('BROADCAST')(a) */ k FROM a
SELECT /*+ REBALANCE(1 + 1, 'x', k.v, `q w`) */ k FROM a
SELECT DISTINCT k, count(*) AS n FROM a WHERE v > 1 GROUP BY k HAVING count(*) > 2 ORDER BY n DESC NULLS LAST LIMIT 10 OFFSET 2
SELECT k, sum(v) FILTER (WHERE b) FROM a GROUP BY GROUPING SETS ((k), ())
SELECT k, id, grouping_id() FROM a GROUP BY ROLLUP (k, id)
SELECT ALL k FROM a GROUP BY ALL ORDER BY ALL DESC
SELECT * EXCEPT (k) FROM a
SELECT a.*, u.id AS `my id` FROM a LEFT JOIN u USING (id, k)
SELECT * FROM a NATURAL FULL OUTER JOIN u
SELECT * FROM a LEFT SEMI JOIN u ON a.k = u.k
SELECT * FROM a CROSS JOIN u
SELECT * FROM a, LATERAL (SELECT max(u.v) AS m FROM u WHERE u.k = a.k) AS x
SELECT k, e FROM a LATERAL VIEW OUTER explode(array(v, id)) t AS e
SELECT * FROM a TABLESAMPLE (10 PERCENT) REPEATABLE (3)
SELECT * FROM a PIVOT (sum(v) AS s FOR k IN ('x' AS x, 'y'))
SELECT * FROM a UNPIVOT INCLUDE NULLS (val FOR name IN (v, id))
SELECT TRANSFORM(k, v) USING 'cat' AS (x STRING, y INT) FROM a
SELECT k, row_number() OVER (PARTITION BY k ORDER BY ts DESC NULLS LAST) AS r, lag(v, 1, 0) OVER w FROM a WINDOW w AS (PARTITION BY k ORDER BY ts)
SELECT sum(v) OVER (ORDER BY ts RANGE BETWEEN INTERVAL 1 HOUR PRECEDING AND CURRENT ROW) FROM a
SELECT last(v) last FROM a last JOIN u ON last.k = u.k
SELECT before, after FROM (SELECT k AS before, v AS after FROM a) period
SELECT CASE k WHEN 'x' THEN 1 WHEN 'y' THEN 2 ELSE CASE WHEN b THEN 3 END END FROM a
SELECT CAST(v AS DECIMAL(10, 2)), TRY_CAST(k AS INT), v::string, DATE '2020-01-01', INTERVAL '1' DAY, X'1F', 1.5BD, 10L, 1e10
SELECT transform(array(1, 2, 3), x -> x + 1), filter(array(v), (x, i) -> x > i), map('a', 1)['a'], named_struct('x', 1).x
SELECT k FROM a WHERE k IN (SELECT k FROM u WHERE u.id = a.id) AND NOT EXISTS (SELECT 1 FROM fewer WHERE fewer.k = a.k)
SELECT k FROM a WHERE v > (SELECT avg(v) FROM u WHERE u.k = a.k)
SELECT k FROM a WHERE (k, v) NOT IN (SELECT k, v FROM u)
SELECT k FROM a WHERE k LIKE ANY ('%x%', 'y%') OR k RLIKE 'z+' OR k ILIKE 'Q'
SELECT k FROM a UNION ALL SELECT k FROM u UNION SELECT k FROM fewer INTERSECT SELECT 'x' MINUS SELECT 'y'
SELECT k FROM a UNION BY NAME ALLOW MISSING COLUMNS SELECT id FROM u
WITH x AS (SELECT k, v FROM a), y (c, d) AS (SELECT * FROM x) SELECT * FROM y JOIN x ON y.c = x.k
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT * FROM r
VALUES (1, 'a'), (2, 'b')
SELECT * FROM VALUES 1, 2, 3 AS data(a)
SELECT * FROM range(10) CROSS JOIN explode(array(1, 2))
FROM a SELECT k WHERE v > 1
FROM a |> WHERE v > 1 |> AGGREGATE count(*) GROUP BY k
TABLE a
SELECT IDENTIFIER('k') FROM IDENTIFIER('a')
SELECT :x, ? FROM a WHERE k = :y
CREATE TABLE z USING parquet PARTITIONED BY (k) AS SELECT * FROM a
CREATE OR REPLACE TEMPORARY VIEW z AS SELECT k FROM a
INSERT INTO u SELECT * FROM a
INSERT OVERWRITE TABLE u PARTITION (k = 'x') SELECT id, v, d, f, b, ts FROM a
INSERT INTO u WITH x AS (SELECT * FROM a) SELECT * FROM x
FROM a INSERT INTO u SELECT * INSERT INTO fewer SELECT id, k
CACHE LAZY TABLE z OPTIONS ('storageLevel' 'DISK_ONLY') AS SELECT * FROM a
EXPLAIN EXTENDED SELECT * FROM a JOIN u ON a.k = u.k
MERGE INTO a USING u ON a.k = u.k WHEN MATCHED THEN UPDATE SET v = u.v WHEN NOT MATCHED THEN INSERT *
UPDATE a SET v = v + 1 WHERE k = 'x'
DELETE FROM a WHERE k IN (SELECT k FROM u)
SET spark.sql.shuffle.partitions = 10
DESCRIBE EXTENDED a
SHOW TABLES LIKE 'a*'
ALTER TABLE a ADD COLUMNS (z INT)
DROP TABLE IF EXISTS a
DECLARE x INT DEFAULT 5
BEGIN DECLARE y INT = 1; SELECT y; END
SELECT count(*) FROM a JOIN u ON a.k = u.k JOIN fewer f ON u.id = f.id JOIN renamed n ON n.id = f.id
SELECT count(*) FROM r JOIN s ON r.ts < s.te AND s.ts < r.te
SELECT r.k, count(*) FROM r, s WHERE r.k = s.k AND r.a <= s.b AND s.a <= r.b GROUP BY r.k
SELECT from_json(k, 'x INT'), parse_json(k):a.b, collate(k, 'UTF8_LCASE'), k COLLATE UTF8_LCASE FROM a
SELECT date_add(DAY, 1, ts), extract(YEAR FROM ts), trim(BOTH 'x' FROM k), substring(k FROM 1 FOR 2), position('x' IN k) FROM a
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY v), listagg(k, ',') WITHIN GROUP (ORDER BY k) FROM a
