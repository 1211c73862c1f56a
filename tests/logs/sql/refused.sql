--# One statement per line that the guard must refuse.
;
-- nothing
SELECT 1; SELECT 2
SELECT FROM WHERE
--# Not a SELECT
DROP VIEW proxy_logs
CREATE TABLE t AS SELECT 1
INSERT INTO proxy_logs VALUES (1)
UPDATE proxy_logs SET day = ''
DELETE FROM proxy_logs
WITH x AS (SELECT 1) DELETE FROM proxy_logs
COPY proxy_logs TO 'x.csv'
COPY (SELECT 1) TO '/tmp/x.parquet'
EXPORT DATABASE 'x'
IMPORT DATABASE 'x'
ATTACH 'x.db'
DETACH memory
USE memory
SET threads = 1
RESET threads
PRAGMA version
PRAGMA database_list
CALL pragma_version()
INSTALL httpfs
LOAD httpfs
CHECKPOINT
VACUUM
BEGIN
PREPARE p AS SELECT 1
EXECUTE p
EXPLAIN SELECT 1
EXPLAIN ANALYZE SELECT 1
DESCRIBE proxy_logs
DESCRIBE SELECT 1
SHOW TABLES
SHOW ALL TABLES
SUMMARIZE proxy_logs
SELECT * FROM (DESCRIBE proxy_logs)
SELECT * FROM (SUMMARIZE proxy_logs)
FROM (SHOW TABLES)
WITH d AS (DESCRIBE proxy_logs) FROM d
PIVOT proxy_logs ON cacheStatus USING count(*)
--# Parameters without values
SELECT ?
SELECT * FROM proxy_logs WHERE day = $day
--# Other tables, files by name
SELECT * FROM other
SELECT * FROM proxy_logs, other
SELECT * FROM other.proxy_logs
SELECT * FROM system.main.proxy_logs
SELECT * FROM information_schema.tables
SELECT * FROM pg_catalog.pg_class
SELECT * FROM duckdb_settings
SELECT * FROM sqlite_master
SELECT * FROM '/etc/passwd'
SELECT * FROM 'x.parquet'
SELECT * FROM "https://example.com/x.csv"
SELECT (SELECT max(x) FROM other) FROM proxy_logs
SELECT * FROM proxy_logs ORDER BY (SELECT 1 FROM other)
SELECT * FROM proxy_logs LIMIT (SELECT count(*) FROM other)
SELECT * FROM proxy_logs AT (VERSION => 1)
SELECT list_transform([1], lambda x: (SELECT x FROM other))
SELECT * FROM (VALUES ((SELECT 1 FROM other)))
SELECT sum(1) OVER (ORDER BY (SELECT 1 FROM other)) FROM proxy_logs
SELECT count(*) FILTER (WHERE EXISTS (FROM other)) FROM proxy_logs
SELECT * REPLACE ((SELECT 1 FROM other) AS day) FROM proxy_logs
SELECT CASE WHEN EXISTS (FROM other) THEN 1 END
PIVOT other ON a IN (1) USING count(*)
--# WITH names out of scope
WITH a AS (SELECT * FROM b), b AS (SELECT 1) FROM a
WITH a AS (FROM a) FROM a
SELECT (WITH q AS (SELECT 1) SELECT 1) FROM q
SELECT * FROM (WITH q AS (SELECT 1) FROM q), q
WITH RECURSIVE r AS (SELECT 1 FROM r UNION ALL SELECT 1 FROM r) FROM r
WITH RECURSIVE r AS (SELECT 1 UNION ALL SELECT 2 FROM recurring.s) FROM r
WITH É AS (SELECT 1) SELECT * FROM é
SELECT * FROM "proxy_logſ"
SELECT * FROM "proxy_logs "
--# Table functions
SELECT * FROM read_csv('/etc/passwd')
SELECT * FROM read_parquet(['a', 'b'])
SELECT * FROM READ_TEXT('/etc/passwd')
SELECT * FROM "read_blob"('x')
SELECT * FROM main.read_text('x')
SELECT * FROM system.main.glob('*')
SELECT * FROM other.range(3)
SELECT * FROM other.main.range(3)
SELECT * FROM main.system.range(3)
SELECT * FROM IFNULL(1, 2)
SELECT * FROM query('SELECT 1')
SELECT * FROM query_table('proxy_logs')
SELECT * FROM histogram('proxy_logs', day)
SELECT * FROM duckdb_settings()
SELECT * FROM duckdb_secrets()
SELECT * FROM pragma_version()
SELECT * FROM json_execute_serialized_sql('{}')
SELECT * FROM enable_logging(storage_path := '/tmp/x')
SELECT * FROM sqlite_scan('a', 'b')
SELECT * FROM range((SELECT count(*) FROM other))
SELECT * FROM proxy_logs p, LATERAL read_text(p.host)
--# Functions
SELECT getenv('HOME')
SELECT current_setting('threads')
SELECT getvariable('x')
SELECT nextval('s')
SELECT sleep_ms(10)
SELECT pg_get_viewdef(1)
SELECT json_serialize_sql('SELECT 1')
SELECT json_serialize_plan('SELECT 1')
SELECT ('/etc/passwd').read_text()
SELECT version()
SELECT current_catalog
SELECT current_role
SELECT current_schema
SELECT current_user
SELECT session_user
SELECT user
SELECT main.current_setting('threads')
SELECT write_log('x')
SELECT no_such_function(day) FROM proxy_logs
SELECT no_such_function(day) OVER () FROM proxy_logs
SELECT list_transform(['threads'], x -> current_setting(x))
SELECT count(*) FROM proxy_logs GROUP BY current_setting('threads')
SELECT sum(x) EXPORT_STATE FROM range(3) t(x)
SELECT day::other.kind FROM proxy_logs
--# Further places and names
WITH RECURSIVE x AS (SELECT '' UNION ALL SELECT content FROM read_text('/etc/passwd')) FROM x
WITH x AS (SELECT * FROM x) SELECT * FROM x
SELECT * FROM (WITH y AS (SELECT 1 a) SELECT * FROM y) z, y
SELECT (WITH y AS (SELECT 1 a) SELECT a FROM y), (SELECT a FROM y)
SELECT count(*) FILTER (WHERE EXISTS (FROM '/etc/passwd')) FROM proxy_logs
SELECT sum(1) OVER (ROWS BETWEEN (SELECT count(*) FROM '/etc/passwd') PRECEDING AND CURRENT ROW) FROM proxy_logs
SELECT lag(day, 1, (SELECT content FROM read_text('/etc/passwd'))) OVER (ORDER BY day) FROM proxy_logs
SELECT * FROM proxy_logs LIMIT (SELECT count(*) FROM '/etc/passwd')
SELECT DISTINCT ON ((SELECT content FROM read_text('/etc/passwd'))) day FROM proxy_logs
SELECT * FROM proxy_logs QUALIFY row_number() OVER (ORDER BY (SELECT 1 FROM '/etc/passwd')) = 1
SELECT * REPLACE ((SELECT content FROM read_text('/etc/passwd')) AS day) FROM proxy_logs
SELECT COLUMNS(c -> (SELECT count(*) FROM '/etc/passwd') > 0) FROM proxy_logs
SELECT [x FOR x IN (SELECT list(content) FROM read_text('/etc/passwd'))]
SELECT * FROM unnest((SELECT list(content) FROM read_text('/etc/passwd')))
SELECT * FROM (VALUES ((SELECT count(*) FROM '/etc/passwd')))
PIVOT '/etc/passwd' ON a IN (1) USING count(*)
PIVOT proxy_logs ON day IN ('a') USING count((SELECT content FROM read_text('/etc/passwd')))
PIVOT proxy_logs ON day IN (SELECT content FROM read_text('/etc/passwd')) USING count(*)
UNPIVOT '/etc/passwd' ON a
SELECT 1 UNION BY NAME FROM 'x.csv'
SELECT * FROM ROWS FROM (read_text('/etc/passwd'))
SELECT * FROM temp.proxy_logs
SELECT * FROM "main.proxy_logs"
SELECT * FROM "ｐroxy_logs"
SELECT 'threads'.current_setting()
SELECT * FROM proxy_logs ORDER BY current_setting('threads')
SELECT max(current_setting('threads')) OVER () FROM proxy_logs
SELECT NULL::memory.main.x
SELECT * FROM df
SET VARIABLE files = ['/etc/passwd']
WITH x AS (INSERT INTO proxy_logs VALUES (1) RETURNING *) SELECT * FROM x
SELECT * INTO t FROM proxy_logs
SELECT * FROM (EXPLAIN SELECT 1)
WITH a AS (SELECT 1) SELECT * FROM main.a
WITH a AS (SELECT 1) SELECT * FROM memory.main.a
SELECT setseed(0.5)
