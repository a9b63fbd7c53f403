-- WINDOW UNION queries whose plans the rules change. The rows must be the same with the rules and without.
-- a, b, c have the columns k int, ts timestamp, v int, n string, with ties and NULL keys.

-- name: only the result is carried, expect prune_columns
SELECT sum(v) OVER w AS s FROM a WINDOW w AS (UNION b PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 10s PRECEDING AND CURRENT ROW)
-- name: two windows over one source, expect merge_window_unions
SELECT k, ts, sum(v) OVER w1 AS s1, count(n) OVER w2 AS s2 FROM a
WINDOW w1 AS (UNION b PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 10s PRECEDING AND CURRENT ROW),
       w2 AS (UNION b PARTITION BY k ORDER BY ts ROWS BETWEEN 3 PRECEDING AND CURRENT ROW)
-- name: sources in opposite orders of age, expect merge_window_unions
SELECT k, ts, v, last_value(v) OVER w1 AS s1, last_value(v) OVER w2 AS s2, sum(v) OVER w3 AS s3 FROM a
WINDOW w1 AS (UNION b, c PARTITION BY k ORDER BY ts ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING),
       w2 AS (UNION c, b PARTITION BY k ORDER BY ts ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING),
       w3 AS (UNION c PARTITION BY k ORDER BY ts ROWS BETWEEN 4 PRECEDING AND CURRENT ROW EXCLUDE CURRENT_ROW)
-- name: a window with union sources beside one without, expect merge_window_unions
SELECT k, v, sum(v) OVER w1 AS s1, min(v) OVER w2 AS s2 FROM a
WINDOW w1 AS (UNION b PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 10s PRECEDING AND CURRENT ROW MAXSIZE 3),
       w2 AS (PARTITION BY k ORDER BY ts ROWS BETWEEN 2 PRECEDING AND CURRENT ROW EXCLUDE CURRENT_ROW)
-- name: filter on the key, expect push_filter
SELECT * FROM (SELECT k, ts, sum(v) OVER w AS s FROM a
  WINDOW w AS (UNION b, c PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 10s PRECEDING AND CURRENT ROW)) WHERE k = 1 AND s > 3
-- name: filter on the null key, expect push_filter
SELECT * FROM (SELECT k, n, count(*) OVER w AS s FROM a
  WINDOW w AS (UNION b PARTITION BY k, n ORDER BY ts ROWS_RANGE BETWEEN 10s PRECEDING AND CURRENT ROW)) WHERE k IS NULL OR n = 'p'
-- name: filter where no row is in another window, expect push_filter
SELECT * FROM (SELECT k, ts, v, sum(v) OVER w AS s FROM a
  WINDOW w AS (UNION b PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 10s PRECEDING AND CURRENT ROW INSTANCE_NOT_IN_WINDOW)) WHERE v > 2
-- name: filter on the time stays above, expect prune_columns
SELECT * FROM (SELECT k, ts, sum(v) OVER w AS s FROM a
  WINDOW w AS (UNION b PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 10s PRECEDING AND CURRENT ROW)) WHERE ts > TIMESTAMP '2024-01-01 00:00:05'
-- name: two partitionings one above the other, expect prune_columns
SELECT k, sum(v) OVER w1 AS s1, sum(v) OVER w2 AS s2 FROM a
WINDOW w1 AS (UNION b PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 10s PRECEDING AND CURRENT ROW),
       w2 AS (UNION c PARTITION BY n ORDER BY ts ROWS_RANGE BETWEEN 10s PRECEDING AND CURRENT ROW)
-- name: a result that nobody reads, expect prune_columns
SELECT k, s2 FROM (SELECT k, sum(v) OVER w1 AS s1, max(n) OVER w2 AS s2 FROM a
  WINDOW w1 AS (UNION b PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 10s PRECEDING AND CURRENT ROW),
         w2 AS (UNION c PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 10s PRECEDING AND CURRENT ROW))
-- name: no result is read, expect prune_columns
SELECT k, v FROM (SELECT k, v, sum(v) OVER w AS s FROM a
  WINDOW w AS (UNION b PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 10s PRECEDING AND CURRENT ROW))
-- name: subqueries as sources, expect prune_columns
SELECT k, sum(v) OVER w AS s FROM (SELECT k, ts, v * 2 AS v, n FROM a WHERE v <> 4) AS d
WINDOW w AS (UNION (SELECT k, ts, v + 1 AS v, n FROM b WHERE n = 'p') PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 10s PRECEDING AND CURRENT ROW)
-- name: a common table expression with a window used twice, expect prune_columns
WITH q AS (SELECT k, ts, v, sum(v) OVER w AS s FROM a
  WINDOW w AS (UNION b PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 10s PRECEDING AND CURRENT ROW))
SELECT l.k, l.s, r.v FROM q AS l JOIN q AS r ON l.k = r.k AND l.s < r.s WHERE l.k > 0
-- name: aggregate, join and order above a window, expect push_join_condition
SELECT d.k, max(d.s) AS m, count(*) AS n FROM (SELECT k, sum(v) OVER w AS s FROM a
  WINDOW w AS (UNION b PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 10s PRECEDING AND CURRENT ROW)) AS d JOIN c ON d.k = c.k AND c.v > 1
GROUP BY d.k ORDER BY d.k
-- name: no order, expect prune_columns
SELECT v, count(*) OVER w AS s FROM a WINDOW w AS (UNION b PARTITION BY n ROWS_RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
