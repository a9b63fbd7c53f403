-- Queries of the relational core. Each is lowered through our nodes and must give plain Spark's rows, names and types.
-- A query starts with "-- name:"; "ordered" after the name compares the rows in order.

-- name: all columns
SELECT * FROM t
-- name: expressions and aliases
SELECT a + b AS s, upper(c) AS u, a * 2, coalesce(d, 0.5) AS d, CASE WHEN a > 2 THEN 'big' ELSE 'small' END FROM t
-- name: repeated output names
SELECT a, a, b AS a FROM t
-- name: alias star beside expressions
SELECT x.*, x.a + 1 FROM t AS x
-- name: filter with three-valued logic
SELECT a, b FROM t WHERE NOT (b > 15) OR a IS NULL
-- name: null-safe comparison
SELECT a, b FROM t WHERE b <=> NULL OR a <=> 1
-- name: between, in, like
SELECT a, c FROM t WHERE a BETWEEN 1 AND 3 AND c IN ('x', 'y') AND c LIKE '%x%'
-- name: quoted names and dots
SELECT `t`.`a` AS `my.col`, `my.col` FROM (SELECT 1 AS `my.col`) AS q, t
-- name: select without from
SELECT 1 AS one, 'x' || 'y' AS xy, NULL AS nothing
-- name: select without from and with a filter
SELECT 1 AS one WHERE 1 = 0
-- name: inner join
SELECT t.a, t.b, u.y FROM t JOIN u ON t.a = u.x
-- name: left join
SELECT t.a, u.y FROM t LEFT JOIN u ON t.a = u.x AND u.y > 100
-- name: left join with a condition on the left side
SELECT t.a, u.y FROM t LEFT JOIN u ON t.a = u.x AND t.b > 15
-- name: left join and a filter for missing matches
SELECT t.a, t.b FROM t LEFT JOIN u ON t.a = u.x WHERE u.x IS NULL
-- name: left join and a filter on the right side
SELECT t.a, u.y FROM t LEFT JOIN u ON t.a = u.x WHERE u.y > 150 AND t.b < 100
-- name: right join
SELECT t.a, u.x, u.y FROM t RIGHT JOIN u ON t.a = u.x AND t.b > 5 AND u.y < 300
-- name: full join
SELECT t.a, u.x, u.z FROM t FULL OUTER JOIN u ON t.a = u.x AND t.b > 10
-- name: full join with a filter
SELECT t.a, u.x FROM t FULL OUTER JOIN u ON t.a = u.x WHERE coalesce(t.a, u.x) > 1
-- name: cross join
SELECT t.a, u.x FROM t CROSS JOIN u WHERE t.a < u.x
-- name: comma join
SELECT t.a, u.y, e.name FROM t, u, e WHERE t.a = u.x AND u.x = e.id
-- name: semi join
SELECT * FROM t LEFT SEMI JOIN u ON t.a = u.x AND u.y > 100
-- name: anti join
SELECT * FROM t LEFT ANTI JOIN u ON t.a = u.x AND t.b > 5
-- name: join using
SELECT id, m.name, n.name FROM e AS m JOIN e AS n USING (id)
-- name: full join using
SELECT * FROM (SELECT a AS k, b FROM t) FULL JOIN (SELECT x AS k, y FROM u) USING (k)
-- name: natural join
SELECT * FROM (SELECT a, b FROM t) NATURAL JOIN (SELECT x AS a, y FROM u)
-- name: null-safe join
SELECT t.a, u.x FROM t JOIN u ON t.a <=> u.x
-- name: inequality join
SELECT t.a, u.x FROM t JOIN u ON t.a < u.x AND t.b <> u.y
-- name: self join
SELECT m.name AS boss, w.name AS worker FROM e AS m JOIN e AS w ON m.id = w.boss WHERE m.pay > w.pay
-- name: three joins of mixed kinds
SELECT t.a, u.y, e.name FROM t LEFT JOIN u ON t.a = u.x JOIN e ON e.id = t.a WHERE e.pay > 10
-- name: parenthesised join
SELECT t.a, u.x, e.id FROM t LEFT JOIN (u JOIN e ON u.x = e.id) ON t.a = u.x
-- name: group by
SELECT c, count(*), count(b), sum(b), avg(d), min(a), max(a) FROM t GROUP BY c
-- name: group by expression
SELECT a % 2 AS parity, (a % 2) + 1, count(*) AS n FROM t GROUP BY a % 2
-- name: group by position and alias
SELECT c AS k, a % 2 AS p, sum(b) FROM t GROUP BY k, 2
-- name: group by all
SELECT c, a, sum(b) FROM t GROUP BY ALL
-- name: aggregate without keys
SELECT count(*), sum(b), max(c) FROM t
-- name: aggregate over nothing
SELECT count(*), sum(b) FROM t WHERE a > 1000
-- name: aggregate with keys over nothing
SELECT a, count(*) FROM t WHERE a > 1000 GROUP BY a
-- name: distinct aggregates and filter clauses
SELECT c, count(DISTINCT b), sum(b) FILTER (WHERE a > 1) AS s, count(*) FILTER (WHERE d IS NULL) FROM t GROUP BY c
-- name: having
SELECT c, sum(b) AS s FROM t GROUP BY c HAVING sum(b) > 20 AND count(*) > 1
-- name: having with an alias
SELECT c, sum(b) AS s FROM t GROUP BY c HAVING s > 20
-- name: having without group by
SELECT max(a) AS m FROM t HAVING count(*) > 100
-- name: rollup
SELECT c, a, sum(b), grouping(c), grouping(a), grouping_id() FROM t GROUP BY ROLLUP (c, a)
-- name: cube
SELECT c, a % 2 AS p, count(*), grouping_id(c, a % 2) FROM t GROUP BY CUBE (c, a % 2)
-- name: grouping sets
SELECT c, a, sum(b) AS s FROM t GROUP BY GROUPING SETS ((c, a), (c), ())
-- name: grouping sets with having and order
SELECT c, a, sum(b) AS s FROM t GROUP BY GROUPING SETS ((c), (a)) HAVING sum(b) > 5
-- name: group by with rollup
SELECT c, count(*) FROM t GROUP BY c WITH ROLLUP
-- name: aggregate of a join
SELECT u.z, sum(t.b) AS s FROM t JOIN u ON t.a = u.x GROUP BY u.z
-- name: union all
SELECT a, c FROM t UNION ALL SELECT x, z FROM u
-- name: union distinct with type widening
SELECT a, d FROM t UNION SELECT x, y FROM u
-- name: intersect
SELECT a FROM t INTERSECT SELECT x FROM u
-- name: intersect all
SELECT a FROM t INTERSECT ALL SELECT x FROM u
-- name: except
SELECT a FROM t EXCEPT SELECT x FROM u
-- name: except all
SELECT a FROM t EXCEPT ALL SELECT x FROM u
-- name: minus and nesting
(SELECT a FROM t UNION ALL SELECT x FROM u) MINUS SELECT id FROM e
-- name: union all of which one column is used
SELECT count(*), sum(k) FROM (SELECT a AS k, c FROM t UNION ALL SELECT x, z FROM u)
-- name: union of which one column is used
SELECT count(k) FROM (SELECT a AS k, c FROM t UNION SELECT x, z FROM u)
-- name: set operation with order and limit, ordered
SELECT a FROM t WHERE a IS NOT NULL UNION SELECT x FROM u ORDER BY a DESC LIMIT 3
-- name: distinct
SELECT DISTINCT c, a % 2 AS p FROM t
-- name: distinct below an aggregate
SELECT count(*) FROM (SELECT DISTINCT a, c FROM t)
-- name: distinct ordered by its items, ordered
SELECT DISTINCT a % 3 AS m FROM t ORDER BY m DESC NULLS LAST
-- name: order by with null placement, ordered
SELECT a, b, c FROM t ORDER BY c DESC NULLS FIRST, a ASC NULLS LAST, b, d
-- name: order by default null placement, ordered
SELECT a FROM t ORDER BY a DESC
-- name: order by position and expression, ordered
SELECT a, b FROM t ORDER BY 1, b * -1
-- name: order by a column that is not selected, ordered
SELECT name FROM e ORDER BY hired DESC, id
-- name: order by an aggregate, ordered
SELECT c FROM t WHERE c IS NOT NULL GROUP BY c ORDER BY sum(b) DESC, c
-- name: order by an alias that hides a column, ordered
SELECT -id AS id, name FROM e ORDER BY id
-- name: limit and offset, ordered
SELECT id, name FROM e ORDER BY id LIMIT 2 OFFSET 1
-- name: offset alone, ordered
SELECT id FROM e ORDER BY id OFFSET 3
-- name: limit zero
SELECT * FROM e LIMIT 0
-- name: limit in a subquery, ordered
SELECT * FROM (SELECT id, pay FROM e ORDER BY pay DESC, id LIMIT 3) AS top WHERE pay < 1000 ORDER BY id
-- name: common table expression
WITH big AS (SELECT a, b FROM t WHERE b > 10) SELECT * FROM big WHERE a < 4
-- name: common table expression used twice
WITH s AS (SELECT c, sum(b) AS total FROM t GROUP BY c)
SELECT x.c, x.total, y.total FROM s AS x JOIN s AS y ON x.total >= y.total
-- name: nested common table expressions with column names
WITH p(k, n) AS (SELECT c, count(*) FROM t GROUP BY c), q AS (SELECT k, n + 1 AS m FROM p) SELECT q.k, m, n FROM q JOIN p ON q.k = p.k
-- name: common table expression inside a subquery
SELECT * FROM (WITH w AS (SELECT x FROM u) SELECT x + 1 AS y FROM w) AS d
-- name: derived table with column names
SELECT d.p, d.q FROM (SELECT a, b FROM t) AS d(p, q) WHERE d.q > 10
-- name: filter through two levels of derived tables
SELECT * FROM (SELECT y + 1 AS z, c FROM (SELECT a * 2 AS y, c FROM t) AS i) AS o WHERE z > 5 AND c = 'x'
-- name: in subquery
SELECT a FROM t WHERE a IN (SELECT x FROM u)
-- name: not in subquery with null
SELECT a FROM t WHERE a NOT IN (SELECT x FROM u)
-- name: not in subquery without null
SELECT a FROM t WHERE a NOT IN (SELECT x FROM u WHERE x IS NOT NULL)
-- name: in subquery of two columns
SELECT a, c FROM t WHERE (a, c) IN (SELECT x, z FROM u)
-- name: exists
SELECT * FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.x = t.a AND u.y > 100)
-- name: not exists
SELECT * FROM t AS o WHERE NOT EXISTS (SELECT * FROM u WHERE u.x = o.a)
-- name: exists or another condition
SELECT a, b FROM t WHERE b > 25 OR EXISTS (SELECT 1 FROM u WHERE u.x = t.a)
-- name: scalar subquery
SELECT a, (SELECT max(y) FROM u) AS m FROM t WHERE b > (SELECT avg(b) FROM t)
-- name: correlated scalar subquery
SELECT a, (SELECT sum(y) FROM u WHERE u.x = t.a) AS s FROM t
-- name: correlated scalar subquery in a filter
SELECT name FROM e AS o WHERE pay > (SELECT avg(pay) FROM e AS i WHERE i.boss = o.boss)
-- name: subquery over a common table expression
WITH v AS (SELECT x FROM u WHERE y > 100) SELECT a FROM t WHERE a IN (SELECT x FROM v)
-- name: subquery in having
SELECT c, sum(b) AS s FROM t GROUP BY c HAVING sum(b) > (SELECT min(y) / 10 FROM u)
-- name: subquery in a case
SELECT a, CASE WHEN a IN (SELECT x FROM u) THEN 'yes' ELSE 'no' END AS found FROM t
-- name: values
SELECT * FROM VALUES (1, 'a'), (2, NULL), (NULL, 'c') AS v(n, s) WHERE n IS NOT NULL
-- name: values in a common table expression
WITH v(n, s) AS (VALUES (1, 'a'), (2, 'b')) SELECT n + 1 AS m, s FROM v
-- name: values joined
SELECT t.a, v.s FROM t JOIN (VALUES (1, 'one'), (3, 'three')) AS v(n, s) ON t.a = v.n
-- name: rank and row_number
SELECT id, rank() OVER (PARTITION BY boss ORDER BY pay DESC) AS r, row_number() OVER (ORDER BY id) AS n FROM e
-- name: running sum and lag
SELECT id, sum(pay) OVER (PARTITION BY boss ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS s, lag(id, 1, -1) OVER (ORDER BY id) AS l FROM e
-- name: named window
SELECT id, count(*) OVER w AS n, (max(pay) OVER w) - pay AS gap FROM e WINDOW w AS (PARTITION BY boss)
-- name: range window
SELECT a, b, count(*) OVER (ORDER BY b RANGE BETWEEN 10 PRECEDING AND CURRENT ROW) AS n FROM t
-- name: window over an aggregate
SELECT c, sum(b) AS s, rank() OVER (ORDER BY sum(b) DESC) AS r FROM t GROUP BY c
-- name: filter above a window
SELECT * FROM (SELECT id, boss, rank() OVER (PARTITION BY boss ORDER BY pay DESC, id) AS r FROM e) WHERE r = 1 AND boss = 1
-- name: window of which the result is not used
SELECT id FROM (SELECT id, rank() OVER (ORDER BY pay) AS r FROM e)
-- name: explode beside a column
SELECT id, explode(array(1, 2)) AS n FROM e WHERE id < 3
-- name: explode below a filter and a count
SELECT count(*) FROM (SELECT id, explode(array(1, 2, 3)) AS n FROM e) WHERE id > 1
-- name: lateral view
SELECT id, n FROM e LATERAL VIEW explode(array(id, id * 10)) v AS n WHERE n > 10
-- name: lateral join
SELECT e.id, l.m FROM e, LATERAL (SELECT max(y) AS m FROM u WHERE u.x = e.id) AS l
-- name: table function
SELECT r.id * 2 AS d FROM range(1, 4) AS r
-- name: pivot
SELECT * FROM (SELECT c, a, b FROM t WHERE c IS NOT NULL) PIVOT (sum(b) FOR a IN (1, 2))
-- name: struct fields
SELECT s.lo, s.hi + 1 AS h, s FROM (SELECT named_struct('lo', a, 'hi', b) AS s FROM t)
-- name: lambda functions
SELECT a, transform(array(a, b), v -> v + 1) AS up, filter(array(a, b), v -> v > 2) AS f FROM t
-- name: dates and intervals
SELECT id, hired + INTERVAL 1 MONTH AS later, year(hired) AS y, datediff(DATE '2024-01-01', hired) AS d FROM e WHERE hired >= DATE '2019-06-01'
-- name: casts and decimals
SELECT CAST(pay AS DECIMAL(6, 1)) AS p, pay / 3 AS third, CAST(id AS STRING) AS s FROM e
-- name: case-insensitive names
SELECT T.A, t.B FROM T WHERE C = 'x'
-- name: lateral column alias
SELECT a + 1 AS x1, x1 * 2 AS x2 FROM t
-- name: qualify by subquery and join on the window's result
SELECT w.id, p.name FROM (SELECT id, row_number() OVER (ORDER BY pay DESC, id) AS rn FROM e) w JOIN e p ON w.id = p.id WHERE w.rn <= 2
-- name: hints on a join and on the result
SELECT /*+ BROADCAST(y), REPARTITION(2, a) */ x.a, y.b FROM t AS x JOIN t AS y ON x.a = y.a
-- name: coalesce hint over an aggregate
SELECT /*+ COALESCE(1) */ a, count(*) AS n FROM t GROUP BY a
-- name: index of an array call
SELECT array(a, b)[1] AS x, array(a, b)[0] + 1 AS y, map('k', a)['k'] AS z FROM t
-- name: struct fields are called as the columns
SELECT to_json(struct(a, t.b, a + 1 AS c)) AS j FROM t
