-- day
-- The totals of a day.
SELECT
    count(DISTINCT userName) AS uniqueUsers,
    count(*) FILTER (cacheStatus = 'HIT') AS cacheHits,
    count(*) FILTER (cacheStatus IN ('MISS', 'BYPASS', 'PASSTHROUGH')) AS cacheMisses,
    count(*) FILTER (cacheStatus IN ('HIT', 'MISS', 'BYPASS', 'PASSTHROUGH')) AS totalHits,
    coalesce(sum(responseSize) FILTER (cacheStatus = 'HIT' AND responseSize > 0), 0) AS cachedBytes,
    coalesce(sum(responseSize) FILTER (cacheStatus IS DISTINCT FROM 'HIT' AND responseSize > 0), 0) AS passThroughBytes,
    coalesce((2 * sum(responseTimeMs) FILTER (responseTimeMs > 0)
        + count(*) FILTER (responseTimeMs > 0))
        // (2 * nullif(count(*) FILTER (responseTimeMs > 0), 0)), 0) AS averageResponseTime,
    coalesce((2 * sum(responseTimeMs) FILTER (responseTimeMs > 0 AND cacheStatus = 'HIT')
        + count(*) FILTER (responseTimeMs > 0 AND cacheStatus = 'HIT'))
        // (2 * nullif(count(*) FILTER (responseTimeMs > 0 AND cacheStatus = 'HIT'), 0)), 0) AS cacheHitAverageResponseTime,
    coalesce((2 * sum(responseTimeMs) FILTER (responseTimeMs > 0 AND cacheStatus IN ('MISS', 'BYPASS', 'PASSTHROUGH'))
        + count(*) FILTER (responseTimeMs > 0 AND cacheStatus IN ('MISS', 'BYPASS', 'PASSTHROUGH')))
        // (2 * nullif(count(*) FILTER (responseTimeMs > 0 AND cacheStatus IN ('MISS', 'BYPASS', 'PASSTHROUGH')), 0)), 0) AS cacheMissAverageResponseTime,
    coalesce(min(responseTimeMs) FILTER (responseTimeMs > 0), 0) AS minResponseTime,
    coalesce(max(responseTimeMs) FILTER (responseTimeMs > 0), 0) AS maxResponseTime
FROM proxy_logs WHERE day BETWEEN $first AND $last;

-- day.queries
-- One record per distinct statement. Entries without a statement count only in the totals. A time outside of the years 0001 to 9999 is null.
SELECT
    md5(standardizedSql) AS queryHash,
    standardizedSql AS statement,
    arg_max_null(cacheKey, (coalesce(timestamp, 0), coalesce(logId, ''))) AS cacheKey,
    arg_max_null(matchedRule, (coalesce(timestamp, 0), coalesce(logId, ''))) AS matchedRule,
    arg_max_null(cacheStatus, (coalesce(timestamp, 0), coalesce(logId, ''))) AS cacheStatus,
    count(*) FILTER (cacheStatus = 'HIT') AS cacheHits,
    count(*) FILTER (cacheStatus IN ('MISS', 'BYPASS', 'PASSTHROUGH')) AS cacheMisses,
    arg_max_null(statusCode, (coalesce(timestamp, 0), coalesce(logId, ''))) AS responseCode,
    coalesce((2 * sum(responseTimeMs) FILTER (responseTimeMs > 0)
        + count(*) FILTER (responseTimeMs > 0))
        // (2 * nullif(count(*) FILTER (responseTimeMs > 0), 0)), 0) AS averageResponseTime,
    arg_max_null(responseSize, (coalesce(timestamp, 0), coalesce(logId, ''))) AS responseSize,
    count(*) AS count,
    sum(warehouseExecutionTimeMs) AS warehouseExecutionTimeMs,
    strftime(make_timestamp_ms(CASE WHEN min(timestamp) BETWEEN -62135596800000 AND 253402300799999
        THEN min(timestamp) END), '%Y-%m-%dT%H:%M:%S.%gZ') AS firstRequestTime,
    strftime(make_timestamp_ms(CASE WHEN max(timestamp) BETWEEN -62135596800000 AND 253402300799999
        THEN max(timestamp) END), '%Y-%m-%dT%H:%M:%S.%gZ') AS lastRequestTime
FROM proxy_logs WHERE day BETWEEN $first AND $last AND standardizedSql IS NOT NULL
GROUP BY standardizedSql
ORDER BY count DESC, queryHash;

-- day.hourlyActivity
-- 24 entries by hour (UTC). In an hour without log entries all numbers are 0.
WITH entries AS (
    SELECT *, (timestamp % 86400000 + 86400000) % 86400000 // 3600000 AS hour
    FROM proxy_logs WHERE day BETWEEN $first AND $last
)
SELECT
    hours.hour,
    count(DISTINCT standardizedSql) AS queries,
    count(*) FILTER (cacheStatus IN ('HIT', 'MISS', 'BYPASS', 'PASSTHROUGH')) AS totalHits,
    count(*) FILTER (cacheStatus = 'HIT') AS cacheHits,
    count(*) FILTER (cacheStatus IN ('MISS', 'BYPASS', 'PASSTHROUGH')) AS cacheMisses,
    coalesce(sum(responseSize) FILTER (cacheStatus = 'HIT' AND responseSize > 0), 0) AS cachedBytes,
    coalesce(sum(responseSize) FILTER (cacheStatus IS DISTINCT FROM 'HIT' AND responseSize > 0), 0) AS passThroughBytes,
    coalesce((2 * sum(responseTimeMs) FILTER (responseTimeMs > 0 AND cacheStatus = 'HIT')
        + count(*) FILTER (responseTimeMs > 0 AND cacheStatus = 'HIT'))
        // (2 * nullif(count(*) FILTER (responseTimeMs > 0 AND cacheStatus = 'HIT'), 0)), 0) AS cacheHitAverageResponseTime,
    coalesce((2 * sum(responseTimeMs) FILTER (responseTimeMs > 0 AND cacheStatus IN ('MISS', 'BYPASS', 'PASSTHROUGH'))
        + count(*) FILTER (responseTimeMs > 0 AND cacheStatus IN ('MISS', 'BYPASS', 'PASSTHROUGH')))
        // (2 * nullif(count(*) FILTER (responseTimeMs > 0 AND cacheStatus IN ('MISS', 'BYPASS', 'PASSTHROUGH')), 0)), 0) AS cacheMissAverageResponseTime,
    count(DISTINCT userName) AS users
FROM range(24) AS hours(hour) LEFT JOIN entries ON entries.hour = hours.hour
GROUP BY hours.hour ORDER BY hours.hour;

-- month
-- The totals of a month. Users and statements are distinct over the whole month.
SELECT
    count(DISTINCT standardizedSql) AS totalQueries,
    count(DISTINCT userName) AS totalUsers,
    count(*) FILTER (cacheStatus = 'HIT') AS totalCacheHits,
    count(*) FILTER (cacheStatus IN ('MISS', 'BYPASS', 'PASSTHROUGH')) AS totalCacheMisses,
    count(*) FILTER (cacheStatus IN ('HIT', 'MISS', 'BYPASS', 'PASSTHROUGH')) AS totalHits,
    coalesce(sum(responseSize) FILTER (cacheStatus = 'HIT' AND responseSize > 0), 0) AS totalCachedBytes,
    coalesce(sum(responseSize) FILTER (cacheStatus IS DISTINCT FROM 'HIT' AND responseSize > 0), 0) AS totalPassThroughBytes,
    coalesce((2 * sum(responseTimeMs) FILTER (responseTimeMs > 0)
        + count(*) FILTER (responseTimeMs > 0))
        // (2 * nullif(count(*) FILTER (responseTimeMs > 0), 0)), 0) AS averageResponseTime,
    coalesce((2 * sum(responseTimeMs) FILTER (responseTimeMs > 0 AND cacheStatus = 'HIT')
        + count(*) FILTER (responseTimeMs > 0 AND cacheStatus = 'HIT'))
        // (2 * nullif(count(*) FILTER (responseTimeMs > 0 AND cacheStatus = 'HIT'), 0)), 0) AS cacheHitAverageResponseTime,
    coalesce((2 * sum(responseTimeMs) FILTER (responseTimeMs > 0 AND cacheStatus IN ('MISS', 'BYPASS', 'PASSTHROUGH'))
        + count(*) FILTER (responseTimeMs > 0 AND cacheStatus IN ('MISS', 'BYPASS', 'PASSTHROUGH')))
        // (2 * nullif(count(*) FILTER (responseTimeMs > 0 AND cacheStatus IN ('MISS', 'BYPASS', 'PASSTHROUGH')), 0)), 0) AS cacheMissAverageResponseTime,
    coalesce(min(responseTimeMs) FILTER (responseTimeMs > 0), 0) AS minResponseTime,
    coalesce(max(responseTimeMs) FILTER (responseTimeMs > 0), 0) AS maxResponseTime
FROM proxy_logs WHERE day BETWEEN $first AND $last;

-- month.hourlyActivity
-- 24 entries by hour of day (UTC) over all days. A mean without data is null, not 0.
WITH entries AS (
    SELECT *, (timestamp % 86400000 + 86400000) % 86400000 // 3600000 AS hour
    FROM proxy_logs WHERE day BETWEEN $first AND $last
)
SELECT
    hours.hour,
    count(DISTINCT standardizedSql) AS queries,
    count(*) FILTER (cacheStatus IN ('HIT', 'MISS', 'BYPASS', 'PASSTHROUGH')) AS totalHits,
    count(*) FILTER (cacheStatus = 'HIT') AS cacheHits,
    count(*) FILTER (cacheStatus IN ('MISS', 'BYPASS', 'PASSTHROUGH')) AS cacheMisses,
    coalesce(sum(responseSize) FILTER (cacheStatus = 'HIT' AND responseSize > 0), 0) AS cachedBytes,
    coalesce(sum(responseSize) FILTER (cacheStatus IS DISTINCT FROM 'HIT' AND responseSize > 0), 0) AS passThroughBytes,
    (2 * sum(responseTimeMs) FILTER (responseTimeMs > 0 AND cacheStatus = 'HIT')
        + count(*) FILTER (responseTimeMs > 0 AND cacheStatus = 'HIT'))
        // (2 * nullif(count(*) FILTER (responseTimeMs > 0 AND cacheStatus = 'HIT'), 0)) AS cacheHitAverageResponseTime,
    (2 * sum(responseTimeMs) FILTER (responseTimeMs > 0 AND cacheStatus IN ('MISS', 'BYPASS', 'PASSTHROUGH'))
        + count(*) FILTER (responseTimeMs > 0 AND cacheStatus IN ('MISS', 'BYPASS', 'PASSTHROUGH')))
        // (2 * nullif(count(*) FILTER (responseTimeMs > 0 AND cacheStatus IN ('MISS', 'BYPASS', 'PASSTHROUGH')), 0)) AS cacheMissAverageResponseTime,
    count(DISTINCT userName) AS users
FROM range(24) AS hours(hour) LEFT JOIN entries ON entries.hour = hours.hour
GROUP BY hours.hour ORDER BY hours.hour;

-- year
-- totalQueries counts statements that were stored in the cache or served from it. cacheElements counts each cacheKey with a MISS once per day; cacheSize adds the size of its last MISS of the day.
SELECT
    count(DISTINCT userName) AS totalUsers,
    count(DISTINCT standardizedSql) FILTER (
        cacheStatus = 'HIT' OR (cacheStatus = 'MISS' AND cacheKey IS NOT NULL)
    ) AS totalQueries,
    count(*) FILTER (cacheStatus = 'HIT') AS totalCacheHits,
    count(*) FILTER (cacheStatus IN ('HIT', 'MISS', 'BYPASS', 'PASSTHROUGH')) AS totalHits,
    (SELECT coalesce(sum(size), 0) FROM (
        SELECT day, greatest(arg_max(responseSize, (coalesce(timestamp, 0), coalesce(logId, ''))), 0) AS size
        FROM proxy_logs
        WHERE day BETWEEN $first AND $last AND cacheStatus = 'MISS' AND cacheKey IS NOT NULL
        GROUP BY day, cacheKey
    )) AS cacheSize,
    count(DISTINCT (day, cacheKey)) FILTER (cacheStatus = 'MISS' AND cacheKey IS NOT NULL) AS cacheElements
FROM proxy_logs WHERE day BETWEEN $first AND $last;

-- year.last365daysQueryActivity
-- The days with data among the 365 that end on the year's last day with data, the oldest first. $first is the second of January of the year before.
WITH stored AS (
    SELECT day, count(*) AS elements, sum(size) AS size
    FROM (
        SELECT day, greatest(arg_max(responseSize, (coalesce(timestamp, 0), coalesce(logId, ''))), 0) AS size
        FROM proxy_logs
        WHERE day BETWEEN $first AND $last AND cacheStatus = 'MISS' AND cacheKey IS NOT NULL
        GROUP BY day, cacheKey
    )
    GROUP BY day
)
SELECT
    replace(day, '-', '/') AS date,
    count(DISTINCT standardizedSql) AS queries,
    count(DISTINCT userName) AS users,
    count(*) FILTER (cacheStatus = 'HIT') AS cacheHits,
    count(*) FILTER (cacheStatus IN ('HIT', 'MISS', 'BYPASS', 'PASSTHROUGH')) AS totalHits,
    coalesce(sum(responseSize) FILTER (cacheStatus = 'HIT' AND responseSize > 0), 0) AS dataTransfer,
    coalesce(any_value(stored.size), 0) AS cacheSize,
    coalesce(any_value(stored.elements), 0) AS cacheElements
FROM proxy_logs LEFT JOIN stored USING (day) WHERE day BETWEEN $first AND $last
GROUP BY day
QUALIFY day::DATE > max(day::DATE) OVER () - 365
ORDER BY day;

-- rules
-- Distinct statements of a year.
SELECT
    count(DISTINCT standardizedSql) AS totalQueries,
    count(DISTINCT standardizedSql) FILTER (cacheStatus = 'PASSTHROUGH') AS uncachedQueries,
    count(DISTINCT standardizedSql) FILTER (cacheStatus = 'BYPASS') AS bypassedQueries
FROM proxy_logs WHERE day BETWEEN $first AND $last;

-- rules.rules
-- hitRate has four decimals, rounded half up. warehouseTimeSavedMs is the number of hits times the mean warehouse time of the rule's own MISS entries; only the product is rounded, half up. It is negative if the times are. // rounds negative numbers towards 0, so the query uses %. requests counts every status, also BLOCKED and errors. notCached is cacheMisses without MISS.
SELECT
    * EXCLUDE (saved, parts, requests, notCached),
    coalesce((saved - (saved % parts + parts) % parts) // parts, 0) AS warehouseTimeSavedMs,
    requests,
    notCached
FROM (SELECT
    matchedRule AS ruleId,
    arg_max_null(matchedRuleName, (coalesce(timestamp, 0), coalesce(logId, ''))) AS ruleName,
    count(DISTINCT standardizedSql) AS queriesMatched,
    count(*) FILTER (cacheStatus IN ('HIT', 'MISS', 'BYPASS', 'PASSTHROUGH')) AS totalExecutions,
    count(*) FILTER (cacheStatus = 'HIT') AS cacheHits,
    count(*) FILTER (cacheStatus IN ('MISS', 'BYPASS', 'PASSTHROUGH')) AS cacheMisses,
    coalesce((20000 * count(*) FILTER (cacheStatus = 'HIT')
        + count(*) FILTER (cacheStatus IN ('HIT', 'MISS', 'BYPASS', 'PASSTHROUGH')))
        // (2 * nullif(count(*) FILTER (cacheStatus IN ('HIT', 'MISS', 'BYPASS', 'PASSTHROUGH')), 0)), 0)
        / 10000 AS hitRate,
    2 * count(*) FILTER (cacheStatus = 'HIT')
        * sum(warehouseExecutionTimeMs) FILTER (cacheStatus = 'MISS')
        + count(warehouseExecutionTimeMs) FILTER (cacheStatus = 'MISS') AS saved,
    2 * nullif(count(warehouseExecutionTimeMs) FILTER (cacheStatus = 'MISS'), 0) AS parts,
    count(*) AS requests,
    count(*) FILTER (cacheStatus IN ('BYPASS', 'PASSTHROUGH')) AS notCached
FROM proxy_logs WHERE day BETWEEN $first AND $last AND matchedRule IS NOT NULL
GROUP BY matchedRule)
ORDER BY totalExecutions DESC, ruleId;

-- opportunities.repeatMisses
-- Three or more MISS, and more MISS than hits.
SELECT
    * EXCLUDE (hits, misses, ruleName),
    'Raise the TTL of ' || coalesce('rule ' || if(matchedRule IS NULL, NULL, coalesce('“' || ruleName || '”', matchedRule)), 'the rule that caches it')
        || ', or invalidate it less often: it had ' || misses || ' misses and ' || hits
        || ' hits, and each further hit saves about '
        || (((2 * totalWarehouseTimeMs + cacheMisses) - ((2 * totalWarehouseTimeMs + cacheMisses) % (2 * cacheMisses) + (2 * cacheMisses)) % (2 * cacheMisses)) // (2 * cacheMisses)) || ' ms of warehouse time.' AS suggestedAction
FROM (SELECT
    md5(standardizedSql) AS queryHash,
    standardizedSql AS statement,
    count(*) FILTER (cacheStatus IN ('HIT', 'MISS', 'BYPASS', 'PASSTHROUGH')) AS executionCount,
    count(*) FILTER (cacheStatus IN ('MISS', 'BYPASS', 'PASSTHROUGH')) AS cacheMisses,
    coalesce(sum(warehouseExecutionTimeMs), 0) AS totalWarehouseTimeMs,
    arg_max_null(matchedRule, (coalesce(timestamp, 0), coalesce(logId, ''))) AS matchedRule,
    arg_max_null(matchedRuleName, (coalesce(timestamp, 0), coalesce(logId, ''))) AS ruleName,
    count(*) FILTER (cacheStatus = 'HIT') AS hits,
    count(*) FILTER (cacheStatus = 'MISS') AS misses
FROM proxy_logs WHERE day BETWEEN $first AND $last AND standardizedSql IS NOT NULL
GROUP BY standardizedSql
HAVING misses >= 3 AND misses > hits)
ORDER BY totalWarehouseTimeMs DESC, queryHash LIMIT 50;

-- opportunities.highCostUncached
-- Two or more PASSTHROUGH or BYPASS. Counts and times are of these entries only.
SELECT
    * EXCLUDE (hits, misses, ruleName),
    coalesce('Let rule ' || if(matchedRule IS NULL, NULL, coalesce('“' || ruleName || '”', matchedRule)) || ' cache this statement',
            'Add a rule that caches this statement')
        || ': it ran ' || executionCount
        || ' times on the warehouse without caching. If only the first execution did, that would save up to '
        || (totalWarehouseTimeMs
            - (((2 * totalWarehouseTimeMs + executionCount) - ((2 * totalWarehouseTimeMs + executionCount) % (2 * executionCount) + (2 * executionCount)) % (2 * executionCount)) // (2 * executionCount)))
        || ' ms.' AS suggestedAction
FROM (SELECT
    md5(standardizedSql) AS queryHash,
    standardizedSql AS statement,
    count(*) FILTER (cacheStatus IN ('BYPASS', 'PASSTHROUGH')) AS executionCount,
    count(*) FILTER (cacheStatus IN ('BYPASS', 'PASSTHROUGH')) AS cacheMisses,
    coalesce(sum(warehouseExecutionTimeMs) FILTER (cacheStatus IN ('BYPASS', 'PASSTHROUGH')), 0) AS totalWarehouseTimeMs,
    arg_max_null(matchedRule, (coalesce(timestamp, 0), coalesce(logId, ''))) AS matchedRule,
    arg_max_null(matchedRuleName, (coalesce(timestamp, 0), coalesce(logId, ''))) AS ruleName,
    count(*) FILTER (cacheStatus = 'HIT') AS hits,
    count(*) FILTER (cacheStatus = 'MISS') AS misses
FROM proxy_logs WHERE day BETWEEN $first AND $last AND standardizedSql IS NOT NULL
GROUP BY standardizedSql
HAVING executionCount >= 2)
ORDER BY totalWarehouseTimeMs DESC, queryHash LIMIT 50;

-- opportunities.lowHitRate
-- 20 or more executions, at least one HIT or MISS, and less than 20 percent hits.
SELECT
    * EXCLUDE (hits, misses, ruleName),
    'Widen the key or raise the TTL of ' || coalesce('rule ' || if(matchedRule IS NULL, NULL, coalesce('“' || ruleName || '”', matchedRule)), 'the rule that caches it')
        || ': only ' || hits || ' of ' || executionCount
        || ' executions were hits, and each further hit saves about '
        || (((2 * totalWarehouseTimeMs + cacheMisses) - ((2 * totalWarehouseTimeMs + cacheMisses) % (2 * cacheMisses) + (2 * cacheMisses)) % (2 * cacheMisses)) // (2 * cacheMisses)) || ' ms of warehouse time.' AS suggestedAction
FROM (SELECT
    md5(standardizedSql) AS queryHash,
    standardizedSql AS statement,
    count(*) FILTER (cacheStatus IN ('HIT', 'MISS', 'BYPASS', 'PASSTHROUGH')) AS executionCount,
    count(*) FILTER (cacheStatus IN ('MISS', 'BYPASS', 'PASSTHROUGH')) AS cacheMisses,
    coalesce(sum(warehouseExecutionTimeMs), 0) AS totalWarehouseTimeMs,
    arg_max_null(matchedRule, (coalesce(timestamp, 0), coalesce(logId, ''))) AS matchedRule,
    arg_max_null(matchedRuleName, (coalesce(timestamp, 0), coalesce(logId, ''))) AS ruleName,
    count(*) FILTER (cacheStatus = 'HIT') AS hits,
    count(*) FILTER (cacheStatus = 'MISS') AS misses
FROM proxy_logs WHERE day BETWEEN $first AND $last AND standardizedSql IS NOT NULL
GROUP BY standardizedSql
HAVING executionCount >= 20 AND hits + misses >= 1 AND 5 * hits < executionCount)
ORDER BY totalWarehouseTimeMs DESC, queryHash LIMIT 50;

-- users
-- The whole history: $first and $last are its first and its last day.
SELECT count(DISTINCT userName) AS totalUsers FROM proxy_logs WHERE day BETWEEN $first AND $last;

-- users.users
-- One record per user of the whole history.
SELECT
    userName AS userId,
    count(DISTINCT standardizedSql) AS uniqueQueries,
    count(*) FILTER (cacheStatus = 'HIT') AS cacheHits,
    count(*) FILTER (cacheStatus IN ('HIT', 'MISS', 'BYPASS', 'PASSTHROUGH')) AS totalHits,
    coalesce((2 * sum(responseTimeMs) FILTER (responseTimeMs > 0)
        + count(*) FILTER (responseTimeMs > 0))
        // (2 * nullif(count(*) FILTER (responseTimeMs > 0), 0)), 0) AS averageResponseTime,
    coalesce(min(responseTimeMs) FILTER (responseTimeMs > 0), 0) AS minResponseTime,
    coalesce(max(responseTimeMs) FILTER (responseTimeMs > 0), 0) AS maxResponseTime
FROM proxy_logs WHERE day BETWEEN $first AND $last AND userName IS NOT NULL
GROUP BY userName ORDER BY totalHits DESC, userId;

-- savings
-- Milliseconds per day, and per hour of the day over all days of the window, in which `day` is null. Scope `withCache` has the executions, `without` also the requests that the cache spared, and `rule` the executions and what this rule spared; `busyMs` and `requests` of a rule are of its spared requests alone. Scope `suspend` has the executions if the warehouse suspended after the seconds in `ruleId`. `$before` is the day before `$first`. `$suspend` and `$minimum` are milliseconds of the price in force at the time `starts`: numbers, or CASE expressions if they change. `$priced` is `host` where it has a price of its own, otherwise null: a column of the result. `$bucket` is the shortest suspend, at least 1 and at most 60000.
WITH entries AS NOT MATERIALIZED (
    SELECT
        day, timestamp AS started, standardizedSql AS statement, serverHostname AS host,
        cacheStatus IN ('HIT', 'HOLD') AS spared,
        CASE WHEN cacheStatus IN ('HIT', 'HOLD') THEN matchedRule END AS rule,
        cacheStatus = 'ERROR' AS failed,
        CASE WHEN cacheStatus NOT IN ('HIT', 'HOLD') AND warehouseExecutionTimeMs >= 0
            THEN warehouseExecutionTimeMs END AS ms
    FROM proxy_logs
    WHERE day BETWEEN $before AND $last
        AND (cacheStatus IN ('HIT', 'HOLD', 'MISS', 'BYPASS', 'PASSTHROUGH')
            OR (cacheStatus = 'ERROR' AND warehouseExecutionTimeMs IS NOT NULL))
        AND NOT (operationType IS NOT DISTINCT FROM 'RESULT_CACHE')
),
means AS (
    SELECT statement, sum(ms) // count(*) AS mean
    FROM entries WHERE NOT failed AND ms IS NOT NULL AND statement IS NOT NULL GROUP BY statement
),
timed AS (
    SELECT
        entries.*,
        CASE WHEN started - epoch_ms(day::TIMESTAMP) BETWEEN -172800000 AND 259199999
            THEN coalesce(ms, CASE WHEN NOT failed THEN mean END) END AS took
    FROM entries LEFT JOIN means USING (statement) WHERE started IS NOT NULL
),
buckets AS MATERIALIZED (
    SELECT
        spared, rule, host, day, min(starts) FILTER (took IS NOT NULL) AS starts,
        max(starts + took) AS ends, max(starts + took + $suspend) AS reach,
        coalesce(sum(took), 0) AS busy, count(took) AS requests, count(*) - count(took) AS unmeasured
    FROM (SELECT spared, rule, host, day, started AS starts, took::BIGINT AS took FROM timed)
    GROUP BY spared, rule, host, day, starts // $bucket
),
parts AS MATERIALIZED (
    SELECT
        spared, rule, host, starts,
        coalesce(lead(earlier) OVER (PARTITION BY spared, rule, host ORDER BY starts), latest) AS reach
    FROM (
        SELECT
            spared, rule, host, starts,
            max(reach) OVER (
                PARTITION BY spared, rule, host ORDER BY starts, reach ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            ) AS earlier,
            max(reach) OVER (PARTITION BY spared, rule, host) AS latest
        FROM buckets WHERE reach IS NOT NULL
        QUALIFY earlier IS NULL OR starts > earlier
    )
),
shortest AS MATERIALIZED (
    SELECT
        host, starts,
        coalesce(lead(earlier) OVER (PARTITION BY host ORDER BY starts), latest) AS reach
    FROM (
        SELECT
            host, starts,
            max(reach) OVER (
                PARTITION BY host ORDER BY starts, reach ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            ) AS earlier,
            max(reach) OVER (PARTITION BY host) AS latest
        FROM (SELECT host, starts, ends + 60000 AS reach FROM buckets WHERE NOT spared) WHERE reach IS NOT NULL
        QUALIFY earlier IS NULL OR starts > earlier
    )
),
rules AS (SELECT DISTINCT rule FROM parts WHERE spared),
scopes AS (
    SELECT 'withCache' AS scope, NULL AS rule, host, starts, reach FROM parts WHERE NOT spared
    UNION ALL SELECT 'without', NULL, host, starts, reach FROM parts
    UNION ALL SELECT 'rule', rule, host, starts, reach FROM parts WHERE spared
    UNION ALL SELECT 'rule', rules.rule, host, starts, reach FROM parts, rules WHERE NOT spared
    UNION ALL SELECT 'suspend', seconds, host, starts, reach + 1000 * (seconds::INTEGER - 60)
        FROM shortest, (SELECT unnest(['60', '120', '300', '600']) AS seconds)
),
joined AS (
    SELECT
        scope, rule, host, starts,
        coalesce(lead(earlier) OVER (PARTITION BY scope, rule, host ORDER BY starts), latest) AS reach
    FROM (
        SELECT
            scope, rule, host, starts,
            max(reach) OVER (
                PARTITION BY scope, rule, host ORDER BY starts, reach ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            ) AS earlier,
            max(reach) OVER (PARTITION BY scope, rule, host) AS latest
        FROM scopes WHERE reach IS NOT NULL
        QUALIFY earlier IS NULL OR starts > earlier
    )
),
sessions AS (
    SELECT scope, rule, $priced AS priced, starts, greatest(reach, starts + $minimum) AS until FROM joined
),
awake AS (
    SELECT
        scope, rule, priced, number,
        least(until, 86400000 * (number + 1)) - greatest(starts, 86400000 * number) AS awake
    FROM (
        SELECT
            scope, rule, priced, starts, until,
            unnest(range(
                greatest(starts, epoch_ms($first::TIMESTAMP)) // 86400000,
                least(until - 1, epoch_ms($last::TIMESTAMP) + 86399999) // 86400000 + 1
            )) AS number
        FROM sessions
    )
),
by_hour AS (
    SELECT
        scope, number,
        least(until, 3600000 * (number + 1)) - greatest(starts, 3600000 * number) AS awake
    FROM (
        SELECT
            scope, starts, until,
            unnest(range(
                greatest(starts, epoch_ms($first::TIMESTAMP)) // 3600000,
                least(until - 1, epoch_ms($last::TIMESTAMP) + 86399999) // 3600000 + 1
            )) AS number
        FROM sessions WHERE scope IN ('withCache', 'without')
    )
),
numbers AS (
    SELECT
        scope, rule, priced, ('1970-01-01'::DATE + number::INTEGER)::VARCHAR AS day, NULL AS hour,
        awake, 0 AS busy, 0 AS requests, 0 AS unmeasured
    FROM awake
    UNION ALL SELECT scope, NULL, NULL, NULL, number % 24, awake, 0, 0, 0 FROM by_hour
    UNION ALL SELECT 'without', NULL, $priced, day, NULL, 0, busy, requests, unmeasured
        FROM buckets WHERE day >= $first
    UNION ALL SELECT 'withCache', NULL, $priced, day, NULL, 0, busy, requests, unmeasured
        FROM buckets WHERE day >= $first AND NOT spared
    UNION ALL SELECT 'rule', rule, $priced, day, NULL, 0, busy, requests, 0
        FROM buckets WHERE day >= $first AND spared AND requests > 0
)
SELECT
    scope, rule AS ruleId, day, hour::INTEGER AS hour,
    sum(awake)::BIGINT AS awakeMs, sum(busy)::BIGINT AS busyMs,
    sum(requests)::BIGINT AS requests, sum(unmeasured)::BIGINT AS unmeasured, priced AS host
FROM numbers GROUP BY ALL ORDER BY ALL;
