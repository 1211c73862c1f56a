--# One statement per line that the guard must let through.
SELECT * FROM proxy_logs LIMIT 1
select COUNT(*) from PROXY_LOGS
FROM proxy_logs SELECT day LIMIT 1;
TABLE proxy_logs LIMIT 1
SELECT p.day FROM main.proxy_logs p LIMIT 1
SELECT 1 + 1 AS two, 'text;with -- marks' AS t
VALUES (1, 'a'), (2, 'b')
SELECT DISTINCT ON (userName) userName, statusCode FROM proxy_logs ORDER BY userName, timestamp DESC
SELECT day, cacheStatus, count(*) FROM proxy_logs GROUP BY ALL HAVING count(*) > 0 ORDER BY ALL
SELECT day, count(*) FROM proxy_logs GROUP BY ROLLUP (day)
SELECT grouping(day), count(*) FROM proxy_logs GROUP BY GROUPING SETS ((day), ())
SELECT count(*) FILTER (WHERE cacheStatus = 'HIT') * 1.0 / count(*) FROM proxy_logs
SELECT quantile_cont(responseTimeMs, 0.95), mode(cacheStatus), median(responseSize) FROM proxy_logs
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY responseTimeMs) FROM proxy_logs
SELECT string_agg(DISTINCT userName, ',' ORDER BY userName) FROM proxy_logs
SELECT arg_max(userName, timestamp), list(day ORDER BY day)[1:2] FROM proxy_logs
SELECT row_number() OVER w, lag(day, 1, 'x') OVER w FROM proxy_logs WINDOW w AS (ORDER BY timestamp)
SELECT sum(1) OVER (ORDER BY timestamp ROWS BETWEEN 2 PRECEDING AND CURRENT ROW EXCLUDE TIES) FROM proxy_logs
SELECT day FROM proxy_logs QUALIFY row_number() OVER (PARTITION BY day ORDER BY timestamp) = 1
WITH a AS (SELECT day FROM proxy_logs), b AS (FROM a) SELECT count(*) FROM b
WITH A1(d) AS MATERIALIZED (SELECT day FROM proxy_logs) SELECT d FROM a1
WITH proxy_logs AS (SELECT * FROM proxy_logs WHERE day > '') SELECT count(*) FROM proxy_logs
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT sum(n) FROM r
WITH RECURSIVE r(n, m) USING KEY (n) AS (SELECT 1, 1 UNION SELECT n, m + 1 FROM recurring.r WHERE m < 3) FROM r
SELECT (WITH q AS (SELECT 1 AS x) SELECT x FROM q)
SELECT count(*) FROM proxy_logs a JOIN proxy_logs b USING (logId)
SELECT count(*) FROM proxy_logs a SEMI JOIN proxy_logs b ON a.logId = b.logId
SELECT count(*) FROM proxy_logs a ASOF JOIN proxy_logs b ON a.timestamp >= b.timestamp
SELECT * FROM (SELECT day FROM proxy_logs) POSITIONAL JOIN range(2) LIMIT 1
SELECT p.day, t.n FROM proxy_logs p, LATERAL (SELECT length(p.day) AS n) t LIMIT 1
SELECT p.day, j.value FROM proxy_logs p, json_each(p.tables) j LIMIT 1
SELECT i FROM range(3) r(i) UNION ALL BY NAME SELECT i FROM generate_series(1, 2) g(i)
SELECT 1 EXCEPT SELECT 2 INTERSECT ALL SELECT 1
SELECT x, i FROM unnest(['a', 'b']) WITH ORDINALITY u(x, i)
SELECT unnest(from_json(tables, '["VARCHAR"]')) FROM proxy_logs
SELECT * EXCLUDE (userName) REPLACE (upper(day) AS day) FROM proxy_logs LIMIT 1
SELECT * RENAME (userName AS user) FROM proxy_logs LIMIT 1
SELECT COLUMNS('.*Ms$'), COLUMNS(c -> c LIKE 'day') FROM proxy_logs LIMIT 1
SELECT coalesce(*COLUMNS(['missReason', 'cacheStatus'])) FROM proxy_logs LIMIT 1
SELECT day FROM proxy_logs WHERE EXISTS (SELECT 1) AND statusCode = ANY (SELECT 200) LIMIT 1
SELECT day FROM proxy_logs WHERE (day, statusCode) IN ((SELECT ('x', 1)), ('y', 2))
SELECT day LIKE 'x%' ESCAPE '$', day ILIKE 'y', day SIMILAR TO 'z', day ~ 'q', day GLOB '*' FROM proxy_logs
SELECT CASE WHEN isReadOnly THEN 'r' ELSE 'w' END, if(isDDL, 1, 0), try(1 / 0) FROM proxy_logs LIMIT 1
SELECT CAST(day AS DATE), TRY_CAST(userName AS DECIMAL(4, 1)), day::STRUCT(a INT)[] FROM proxy_logs WHERE false
SELECT 'a'::ENUM ('a', 'b'), {'a': [1]}, MAP {'k': 1}, [1, 2][1], row(1, 2), (1, 2)
SELECT list_transform([1, 2], lambda x: x + 1), list_filter([1], x -> x > 0), [x * 2 FOR x IN [1, 2] IF x > 1]
SELECT struct_pack(a := 1).a, s.b FROM (SELECT {'b': 2} AS s)
SELECT userName.upper(), lower(userName).length() FROM proxy_logs LIMIT 1
SELECT to_timestamp(timestamp / 1000) AT TIME ZONE 'Europe/Berlin', date_trunc('hour', epoch_ms(timestamp)) FROM proxy_logs
SELECT current_date, now() - INTERVAL 3 DAY, EXTRACT(hour FROM current_timestamp)
SELECT json_extract(tables, '$[0]'), tables ->> '$[0]' FROM proxy_logs LIMIT 1
SELECT regexp_extract(standardizedSql, 'FROM (\w+)', 1) FROM proxy_logs LIMIT 1
SELECT userName COLLATE NOCASE FROM proxy_logs ORDER BY userName COLLATE de LIMIT 1
SELECT #1, day BETWEEN 'a' AND 'b' FROM proxy_logs LIMIT 10%
SELECT count(*) FROM proxy_logs TABLESAMPLE reservoir(10 ROWS) REPEATABLE (3)
PIVOT proxy_logs ON cacheStatus IN ('HIT', 'MISS') USING count(*) GROUP BY day
SELECT * FROM proxy_logs PIVOT (count(*) FOR cacheStatus IN ('HIT') GROUP BY day)
UNPIVOT (SELECT 1 AS a, 2 AS b) ON a, b INTO NAME n VALUE v
SELECT "user" FROM (SELECT userName AS "user" FROM proxy_logs)
WITH métriques AS (SELECT 1 AS é) SELECT é FROM métriques
SELECT sum(timestamp ORDER BY day) OVER (), count(DISTINCT day) OVER () FROM proxy_logs
SELECT * FROM proxy_logs a LEFT JOIN LATERAL (SELECT a.day AS d) q ON true
SELECT * FROM proxy_logs NATURAL JOIN (SELECT '2026' AS day)
SELECT 1 WHERE (1, 2) IN (VALUES (1, 2))
SELECT x FROM range(3) t(x) LIMIT 1 + 1 OFFSET (SELECT 1)
SELECT ARRAY [1, 2], ARRAY(SELECT 1), 'AB'::BLOB, 1_000, 0x1F, E'a\n', $$q;$$, 1e5
SELECT unnest({'a': 1, 'b': 2}), unnest([[1]], max_depth := 2), unnest([1], recursive := true)
SELECT s.* FROM (SELECT {'a': 1} AS s)
SELECT p FROM proxy_logs p LIMIT 1
SELECT 3 !, @(-1), ~1, 2 ^ 3, 5 // 2, 1 OPERATOR(+) 2, 5 & 3, 1 << 2
SELECT day IS TRUE, day ISNULL, day IS NOT UNKNOWN FROM (SELECT true AS day)
SELECT sum(a) OVER (ORDER BY b RANGE BETWEEN INTERVAL 1 DAY PRECEDING AND CURRENT ROW) FROM (SELECT 1 AS a, DATE '2026-01-01' AS b)
SELECT first_value(a IGNORE NULLS) OVER w, nth_value(a, 2) OVER w FROM (SELECT 1 AS a) WINDOW w AS (ORDER BY a GROUPS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING EXCLUDE GROUP)
WITH p AS (PIVOT proxy_logs ON cacheStatus IN ('HIT', 'MISS') USING sum(responseSize) AS s, count(*) AS c GROUP BY day) FROM p
SELECT * FROM proxy_logs UNPIVOT INCLUDE NULLS (v FOR n IN (responseSize, requestSize)) LIMIT 1
UNPIVOT (SELECT responseSize, requestSize FROM proxy_logs) ON COLUMNS('Size$') INTO NAME n VALUE v
SELECT min(COLUMNS(*)) FROM proxy_logs
SELECT * LIKE '%Size' FROM proxy_logs LIMIT 1
SELECT 1 IS DISTINCT FROM 2, NULLIF(1, 2), IFNULL(1, 2), greatest(1, 2)
SELECT max_by(day, timestamp, 3), approx_quantile(responseTimeMs, [0.5, 0.9]) FROM proxy_logs
SELECT list_reduce([1, 2], lambda a, b: a + b), [x + 1 FOR x IN [1, 2]], list_zip([1], [2])
SELECT TIMESTAMP WITH TIME ZONE '2026-01-01 00:00:00+00', INTERVAL (2) DAY, strftime(now(), '%Y')
SELECT * FROM json_tree('{"a": [1]}')
SELECT * FROM repeat_row(1, 'x', num_rows := 3), repeat(5, 2)
SELECT hash(1), md5('a'), uuid() IS NULL, random() < 2
WITH t AS (SELECT 1 AS x), u AS (WITH v AS (FROM t) FROM v) FROM u
SELECT histogram(responseTimeMs), count_if(isReadOnly), bool_or(isDDL) FROM proxy_logs
SELECT LOCALTIMESTAMP, CURRENT_TIME, current_localtimestamp()
((SELECT 1))
--# Further forms
WITH read_csv AS (SELECT 1 AS a) SELECT a FROM read_csv
WITH "main" AS (SELECT 1 AS a) SELECT a FROM main
WITH "Proxy_Logs" AS (SELECT day FROM proxy_logs LIMIT 1) SELECT * FROM PROXY_LOGS
WITH x AS (WITH y AS (SELECT 1 a) FROM y) SELECT (WITH z AS (SELECT a FROM x) SELECT a FROM z)
WITH p AS (PIVOT proxy_logs ON cacheStatus IN ('HIT') USING count(*) GROUP BY day) SELECT sum(HIT) FROM p
WITH RECURSIVE d(d) AS (SELECT DATE '2026-01-01' UNION ALL SELECT (d + INTERVAL 1 DAY)::DATE FROM d WHERE d < DATE '2026-01-03') FROM d
WITH "été" AS (SELECT 1 AS "ß") SELECT "ß" FROM "été"
SELECT memory.main.proxy_logs.day FROM memory.main.proxy_logs LIMIT 1
SELECT x.day FROM x: proxy_logs LIMIT 1
SELECT p.* EXCLUDE (p.day) FROM proxy_logs p LIMIT 1
SELECT * LIKE '%Ms' FROM proxy_logs LIMIT 1
SELECT COLUMNS('(.*)Ms') AS '\1_millis', struct_pack(*COLUMNS('.*Ms')) FROM proxy_logs LIMIT 1
SELECT COLUMNS(* EXCLUDE (day))::VARCHAR FROM proxy_logs LIMIT 1
SELECT * FROM range(2) t(i) JOIN LATERAL (SELECT day FROM proxy_logs WHERE statusCode > t.i LIMIT 1) u ON true
SELECT i, (SELECT count(*) FROM proxy_logs WHERE statusCode = 200 + i) FROM range(2) t(i)
SELECT count(*) FROM (SELECT day FROM proxy_logs LIMIT 1) a ANTI JOIN (SELECT day FROM proxy_logs) b USING (day)
SELECT count(*) FROM (SELECT timestamp FROM proxy_logs) a ASOF LEFT JOIN (SELECT timestamp, day FROM proxy_logs) b USING (timestamp)
SELECT sum(1) OVER (ORDER BY day GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE CURRENT ROW) FROM proxy_logs
SELECT lag(missReason IGNORE NULLS) OVER (ORDER BY timestamp), row_number(ORDER BY day) OVER (ORDER BY timestamp) FROM proxy_logs
SELECT sum(n) OVER w, avg(n) OVER (w ROWS 2 PRECEDING) FROM (SELECT day, count(*) n FROM proxy_logs GROUP BY day) WINDOW w AS (ORDER BY day)
SELECT day, cacheStatus, grouping_id(day, cacheStatus), count(*) FROM proxy_logs GROUP BY CUBE (day, cacheStatus)
SELECT mode() WITHIN GROUP (ORDER BY cacheStatus), max(timestamp, 3), count() FROM proxy_logs
UNPIVOT (SELECT 1 a, 2 b, 3 c, 4 d) ON (a, b) AS x, (c, d) AS y INTO NAME n VALUE v1, v2
UNPIVOT (SELECT day, responseTimeMs, responseSize FROM proxy_logs LIMIT 3) ON COLUMNS('response.*') INTO NAME metric VALUE v
SELECT * FROM (SELECT 1 a, NULL::INT c) UNPIVOT INCLUDE NULLS (v FOR n IN (a, c))
SELECT * FROM proxy_logs ORDER BY timestamp LIMIT (SELECT 2) OFFSET 1
SELECT * FROM proxy_logs USING SAMPLE 10 PERCENT (bernoulli, 42)
SELECT userName FROM proxy_logs ORDER BY userName COLLATE NOCASE.NOACCENT, random()
SELECT 'x'::UNION(num INT, str VARCHAR), union_tag(union_value(s := 'x')), variant_typeof(1::VARIANT)
SELECT unnest({'a': 1, 'b': {'c': 2}}, recursive := true), unnest([[1, 2], [3]], max_depth := 2)
SELECT ARRAY(SELECT DISTINCT cacheStatus FROM proxy_logs), (FROM range(1) SELECT 5)
SELECT 1_000, 1e3, .5, 0xFF, E'a\nb', $$dollar$$, $tag$x$tag$, x'41', 1 AS "table"
SELECT day FROM proxy_logs WHERE day = (SELECT max(day) FROM proxy_logs) LIMIT 1
SELECT u.user FROM (SELECT 1 AS user) u
SELECT 1;;
WITH u(user) AS (SELECT 1) SELECT user FROM u
--# Forms that few write
(SELECT 1 UNION SELECT 2) ORDER BY 1 LIMIT 1
WITH a AS (SELECT 1) FROM a UNION SELECT 2
SELECT day FROM proxy_logs LIMIT 10% OFFSET 1
SELECT a, b FROM proxy_logs AS p(a, b) LIMIT 1
SELECT a FROM (SELECT day FROM proxy_logs) t(a) TABLESAMPLE 10%
SELECT * FROM proxy_logs PIVOT (count(*) FOR cacheStatus IN ('HIT') GROUP BY day) AS p(a, b)
SELECT * FROM main.range(3) a, system.main.range(2) b
SELECT main.abs(1), system.main.abs(1), main.count(*) OVER (), system.main.count(*) OVER ()
SELECT count(*) FILTER (WHERE statusCode = 200) OVER (PARTITION BY day) FROM proxy_logs
SELECT [1, 2]::INT[2], NULL::STRUCT(a DECIMAL(4, 1)[2]), 'POINT(1 2)'::GEOMETRY
--# Columns with the names of functions that may not be called
SELECT user FROM (SELECT 1) t(user)
SELECT user FROM (UNPIVOT (SELECT 1 AS a) ON a INTO NAME user VALUE v)
SELECT user FROM (SELECT * RENAME (day AS user) FROM proxy_logs)
