-- What the statements read.
CREATE OR REPLACE TEMPORARY VIEW pairs AS SELECT * FROM VALUES
  (1, 1), (1, 2), (2, 1), (2, 2), (3, 1), (3, CAST(NULL AS INT)), (CAST(NULL AS INT), 1), (CAST(NULL AS INT), CAST(NULL AS INT)) AS p(a, b);
CREATE OR REPLACE TEMPORARY VIEW sales AS SELECT * FROM VALUES
  ('tea', 2020, 10), ('tea', 2021, 20), ('milk', 2020, 5), ('milk', 2021, 40), ('milk', 2021, 2) AS s(item, year, amount);
CREATE OR REPLACE TEMPORARY VIEW emp AS SELECT * FROM VALUES
  (10, 'ann', DATE '2001-01-01', 100.0D, 1), (11, 'bob', DATE '2002-02-02', 200.5D, 2), (12, 'cec', DATE '2001-03-03', 150.0D, 1),
  (13, 'dan', CAST(NULL AS DATE), 400.0D, CAST(NULL AS INT)), (14, 'eve', DATE '2005-05-05', CAST(NULL AS DOUBLE), 9) AS e(id, name, hired, salary, dept_id);
CREATE OR REPLACE TEMPORARY VIEW dept AS SELECT * FROM VALUES (1, 'rice', 'north'), (2, 'corn', 'south'), (3, 'oats', CAST(NULL AS STRING)) AS d(dept_id, dept_name, state);
CREATE OR REPLACE TEMPORARY VIEW bonus AS SELECT * FROM VALUES ('ann', 10.5BD), ('ann', 20.25BD), ('dan', 30BD), ('zoe', 1BD) AS x(name, amount);
CREATE OR REPLACE TEMPORARY VIEW grp AS SELECT * FROM VALUES (1, 1, 1), (2, 2, 1), (5, 0, 2) AS t(a, b, k);
CREATE OR REPLACE TEMPORARY VIEW alls AS SELECT * FROM VALUES (1, 2, 9), (2, 1, 7), (3, 3, 8) AS t(x, y, all);
CREATE OR REPLACE TEMPORARY VIEW nest AS SELECT * FROM VALUES
  (1, array(3, 1, 2), map('p', 1, 'q', 2), named_struct('u', 7, 'v', 'w'), array(named_struct('i', 1, 'j', 'a'), named_struct('i', 2, 'j', 'b'))),
  (2, array(), map(), named_struct('u', 8, 'v', 'z'), array()) AS n(id, arr, m, s, structs);
CREATE OR REPLACE TEMPORARY VIEW words AS SELECT * FROM VALUES ('Spark', 'spark', 1), ('ab_c', 'a%', 2), ('abc', 'ABC', 3), (NULL, 'x', 4) AS w(s, t, n);
CREATE OR REPLACE TEMPORARY VIEW times AS SELECT * FROM VALUES
  (1, TIMESTAMP '2020-01-01 10:00:00', TIMESTAMP_NTZ '2020-01-01 10:00:00', DATE '2020-01-31', INTERVAL '1' DAY, INTERVAL '2-3' YEAR TO MONTH),
  (2, TIMESTAMP '2021-12-31 23:59:59', TIMESTAMP_NTZ '2021-12-31 23:59:59', DATE '2020-02-29', INTERVAL '5 06:07:08' DAY TO SECOND, INTERVAL '0-1' YEAR TO MONTH) AS t(id, ts, ntz, d, dt, ym);
CREATE OR REPLACE TEMPORARY VIEW nums AS SELECT CAST(1 AS TINYINT) AS y, CAST(2 AS SMALLINT) AS sh, 3 AS i, 4L AS l, 1.5F AS f, 2.5D AS db, CAST(12.34 AS DECIMAL(10,2)) AS dec, '7' AS str, true AS bo, X'1A' AS bin;
