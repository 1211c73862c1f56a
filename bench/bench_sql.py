"""Measure SQL over HTTP, compared to the same query in a warm DuckDB of this process with as many threads.

Goals: for 13 typical queries, a geometric mean of the ratios of at most 1.2, and at most 6 ms more; half the
engine's time for a repeated query; 0.85 of the engine's throughput with eight callers; about the same
for a query of one day with 360 days as with 30 (1.15); with four bombs (queries that run until the deadline)
at most 1.5 times the 95th percentile of others.

``--rows`` sets the size of the log, over 30 days.
"""

from __future__ import annotations

import argparse
import http.client
import itertools
import json
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any, Final

import duckdb

from bench import harness
from logs import columns

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from uuid import UUID

_DAYS: Final = 30
_FIRST: Final = date(2025, 1, 1)
_CALLERS: Final = 8
_REPEATS: Final = 9
_ROUNDS: Final = 3
_SECONDS: Final = 6.0
_NUMBERS: Final = itertools.count()

_ONE: Final = "2025-01-20"
_WEEK: Final = "day BETWEEN '2025-01-20' AND '2025-01-26'"
_LAST: Final = "row_number() OVER (PARTITION BY userName ORDER BY timestamp DESC)"

#: Typical queries.
_QUERIES: Final = {
    "top statements, week": f"""
        SELECT standardizedSql, count(*) AS n, avg(responseTimeMs) AS ms FROM proxy_logs WHERE {_WEEK}
        GROUP BY 1 ORDER BY n DESC, 1 LIMIT 20""",
    "p95 by hour, day": f"""
        SELECT timestamp // 3600000 AS h, quantile_cont(responseTimeMs, 0.95) FROM proxy_logs
        WHERE day = '{_ONE}' GROUP BY 1 ORDER BY 1""",
    "p95 by day": "SELECT day, quantile_cont(responseTimeMs, 0.95) FROM proxy_logs GROUP BY 1 ORDER BY 1",
    "hit rate per rule": """
        SELECT matchedRule, count(*) FILTER (WHERE cacheStatus = 'HIT') / count(*) AS rate FROM proxy_logs
        GROUP BY 1 ORDER BY 1""",
    "json_extract, week": f"""
        SELECT json_extract_string(tables, '$[0]') AS t, count(*) FROM proxy_logs WHERE {_WEEK}
        GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 20""",
    "unnest tables, day": f"""
        SELECT t, count(*) FROM (
            SELECT unnest(json_extract_string(tables, '$[*]')) AS t FROM proxy_logs WHERE day = '{_ONE}'
        ) GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 20""",
    "regexp, week": f"""
        SELECT count(*) FROM proxy_logs
        WHERE {_WEEK} AND regexp_matches(standardizedSql, 'table_1[0-9]+ WHERE')""",
    "distinct users by day": "SELECT day, count(DISTINCT userName) FROM proxy_logs GROUP BY 1 ORDER BY 1",
    "window over days": """
        SELECT day, sum(count(*)) OVER (ORDER BY day ROWS BETWEEN 6 PRECEDING AND CURRENT ROW)
        FROM proxy_logs GROUP BY day ORDER BY day""",
    "look-up, one day": f"""
        SELECT * FROM proxy_logs WHERE day = '{_ONE}' AND logId = (
            SELECT max(logId) FROM proxy_logs WHERE day = '{_ONE}')""",
    "look-up, all days": "SELECT logId, userName, day FROM proxy_logs WHERE logId = 'log-4711'",
    "status by day": """
        SELECT day, cacheStatus, count(*) FROM proxy_logs GROUP BY ALL ORDER BY ALL""",
    "last row per user, day": f"""
        SELECT userName, timestamp, cacheStatus FROM proxy_logs WHERE day = '{_ONE}' QUALIFY {_LAST} = 1
        ORDER BY 1""",
}
_SHORT: Final = (
    f"SELECT cacheStatus, count(*) AS n FROM proxy_logs WHERE day = '{_ONE}' GROUP BY 1 ORDER BY 1"
)

#: Queries that use their processors until the deadline.
_BOMBS: Final = (
    "SELECT sum(hash(a.i, b.i)) FROM range(10000000) a(i), range(10000000) b(i)",
    "SELECT count(*) FROM proxy_logs a, proxy_logs b WHERE levenshtein(a.queryHash, b.queryHash) < 0",
    "SELECT max(list_sum(list_transform(range(3000), lambda x: x * i))) FROM range(100000000) r(i)",
    "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT max(n) FROM t",
)

_STATUSES: Final = ", ".join(f"'{status}'" for status in columns.CACHE_STATUSES)
_VALUES: Final = {
    "timestamp": "epoch_ms($day::TIMESTAMP) + i * 86400000 // $rows",
    "userName": "'user-' || (hash(i, $day) % 500)",
    "statusCode": "200",
    "responseSize": "(hash(i) % 100000)::BIGINT",
    "responseTimeMs": "(hash(i, 1) % 3000)::BIGINT",
    "cacheStatus": f"[{_STATUSES}][1 + (sqrt(hash(i, 2) % 144))::INTEGER % {len(columns.CACHE_STATUSES)}]",
    "matchedRule": "'rule-' || (hash(i, 3) % 40)",
    "standardizedSql": "'SELECT a, b FROM table_' || (hash(i, 4) % 300) || ' WHERE a = ? AND b > ?'",
    "queryHash": "md5((hash(i, 4) % 300)::VARCHAR)",
    "statementType": "'SELECT'",
    "isReadOnly": "true",
    "tableCount": "2",
    "tables": """'["s.table_' || (hash(i, 4) % 300) || '","s.table_' || (hash(i, 5) % 300) || '"]'""",
    "logId": "'log-' || (i + $offset)",
    "clientIp": "'10.0.0.' || (hash(i, 6) % 250)",
    "userAgent": "'driver/1.' || (hash(i, 7) % 5)",
}


@dataclass(frozen=True, slots=True)
class Caller:
    """A client that queries one tenant's log. A connection is used by one thread."""

    port: int
    token: str
    tenant: UUID

    def connect(self, *, new: bool = True) -> Callable[[str], None]:
        """Return a function that runs a statement over a kept connection, and raises if it fails.

        A new statement differs from all before, so that no kept result answers it.
        """
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)

        def ask(statement: str) -> None:
            text = f"{statement} -- {next(_NUMBERS)}" if new else statement
            status, body = self._send(connection, text)
            if status != 200:
                raise RuntimeError(f"answered {status}: {body[:300]!r}")

        return ask

    def bomb(self, statement: str) -> int:
        """Send a statement that the service must stop. Return the status."""
        return self._send(http.client.HTTPConnection("127.0.0.1", self.port, timeout=60), statement)[0]

    def _send(self, connection: http.client.HTTPConnection, statement: str) -> tuple[int, bytes]:
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        connection.request("POST", f"/tenants/{self.tenant}/query", json.dumps({"sql": statement}), headers)
        answer = connection.getresponse()
        return answer.status, answer.read()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=600_000, help="rows of the log, over 30 days")
    rows = parser.parse_args().rows
    with harness.environment() as directory:
        from django.conf import settings  # noqa: PLC0415  # needs Django

        from tests import factories  # noqa: PLC0415

        world = factories.make_world()
        history = factories.make_tenant(world.account, "History", owner=world.owner)
        folder = directory / "objects" / str(world.tenant.pk) / "compacted"
        write_log(folder, rows_per_day=rows // _DAYS)
        repeat_log(folder, directory / "objects" / str(history.pk) / "compacted", times=12)
        for tenant in (world.tenant, history):
            register(directory / "objects", tenant.pk)
        alone = open_engine(folder, threads=settings.SQL_OPTIONS.limits.threads)
        token = factories.sign_in(world.owner)
        with harness.granian(threads=2 * _CALLERS) as port:
            short, long = (Caller(port, token, tenant.pk) for tenant in (world.tenant, history))
            show_queries(short, alone, rows=rows)
            show_figures(short, long, alone)


# The log -----------------------------------------------------------------------------------------


def write_log(folder: Path, *, rows_per_day: int) -> None:
    """Write 30 days of files, sorted by time, in the folders of compaction."""
    for number in range(_DAYS):
        day = _FIRST + timedelta(days=number)
        path = folder / f"day={day}" / "bench.parquet"
        path.parent.mkdir(parents=True)
        values = {column.name: f"NULL::{column.type}" for column in columns.COLUMNS}
        values |= {name: f"({text})::{columns.BY_NAME[name].type}" for name, text in _VALUES.items()}
        chosen = ", ".join(f'{value} AS "{name}"' for name, value in values.items())
        for name, value in {
            "$day": f"'{day}'",
            "$rows": str(rows_per_day),
            "$offset": str(number * rows_per_day),
        }.items():
            chosen = chosen.replace(name, value)
        duckdb.execute(
            f"COPY (SELECT {chosen} FROM range({rows_per_day}) r(i)) TO '{path}'"
            " (FORMAT parquet, COMPRESSION zstd)"
        )


def repeat_log(source: Path, target: Path, *, times: int) -> None:
    """Make a history of ``times`` as many days with hard links. It ends with the days of ``source``."""
    days = sorted(source.iterdir())
    for turn, day in itertools.product(range(times), days):
        moved = date.fromisoformat(day.name.removeprefix("day=")) - timedelta(days=turn * len(days))
        path = target / f"day={moved}" / "bench.parquet"
        path.parent.mkdir(parents=True)
        path.hardlink_to(day / "bench.parquet")


def register(objects: Path, tenant: UUID) -> None:
    """Make the files in the store the tenant's current partitions."""
    from logs.models import Partition  # noqa: PLC0415  # needs Django

    Partition.objects.bulk_create(
        Partition(
            tenant_id=tenant,
            day=date.fromisoformat(path.parent.name.removeprefix("day=")),
            listing_digest="bench",
            build="bench",
            file=str(path.relative_to(objects)),
            rows=1,
            bytes=path.stat().st_size,
            objects_read=1,
            duplicates=0,
            quarantined=0,
        )
        for path in (objects / str(tenant) / "compacted").glob("*/*.parquet")
    )


def open_engine(folder: Path, *, threads: int) -> duckdb.DuckDBPyConnection:
    """Return an engine in this process, with the same view as in the service's query processes."""
    connection = duckdb.connect(config={"threads": threads})
    names = ", ".join(f'"{column.name}"' for column in columns.COLUMNS)
    connection.execute(
        f"CREATE VIEW proxy_logs AS SELECT {names}, day FROM read_parquet('{folder}/*/*.parquet',"
        " hive_partitioning = true, hive_types = {'day': VARCHAR})"
    )
    return connection


# Figures -----------------------------------------------------------------------------------------


def show_queries(caller: Caller, alone: duckdb.DuckDBPyConnection, *, rows: int) -> None:
    """Measure each query over HTTP, new and repeated, and in the engine, in turn."""
    ask, ask_again = caller.connect(), caller.connect(new=False)
    table: list[list[Any]] = []
    for title, statement in _QUERIES.items():
        new, repeated, direct = [], [], []
        for _ in range(_REPEATS + 1):
            new.append(time_of(lambda: ask(statement)))  # noqa: B023 - called at once
            repeated.append(time_of(lambda: ask_again(statement)))  # noqa: B023
            direct.append(time_of(lambda: alone.execute(statement).fetchall()))  # noqa: B023
        one, again, other = (statistics.median(times[1:]) for times in (new, repeated, direct))
        table.append([title, one, other, one - other, again, one / other, again / other])
    means = [statistics.geometric_mean(float(row[column]) for row in table) for column in (5, 6)]
    harness.show(
        f"{rows:,} rows in {_DAYS} days: ms over HTTP and in a warm engine, median of {_REPEATS}",
        ["query", "HTTP", "engine", "above", "repeated", "ratio", "ratio repeated"],
        [*table, ["geometric mean", "", "", "", "", *means]],
    )


def show_figures(short: Caller, long: Caller, alone: duckdb.DuckDBPyConnection) -> None:
    """Measure throughput, the effect of a long history, and the effect of bombs on other callers."""
    rounds = [
        (rate(short.connect), rate(lambda: lambda text: alone.cursor().execute(text).fetchall()))
        for _ in range(_ROUNDS)
    ]
    served, direct = (statistics.median(rates) for rates in zip(*rounds, strict=True))
    ask_short, ask_long = short.connect(), long.connect()
    pairs = [
        (time_of(lambda: ask_short(_SHORT)), time_of(lambda: ask_long(_SHORT))) for _ in range(10 * _REPEATS)
    ]
    few, many = (statistics.median(times) for times in zip(*pairs, strict=True))
    calm, bombed = bomb(short, long)
    harness.show(
        "Of the service as a whole",
        ["figure", "service", "compared to", "ratio"],
        [
            [f"queries/s of {_CALLERS} callers, and of the engine alone", served, direct, served / direct],
            ["ms of a query of one day with 360 days, and with 30", many, few, many / few],
            [f"ms, p95 of others with {len(_BOMBS)} bombs, and with none", bombed, calm, bombed / calm],
        ],
    )


def rate(connect: Callable[[], Callable[[str], object]]) -> float:
    """Return the queries per second of eight callers. Each runs the 13 queries again and again."""

    def call(number: int) -> int:
        ask = connect()
        statements = itertools.islice(itertools.cycle(_QUERIES.values()), number, None)
        return sum(1 for _ in itertools.takewhile(lambda _: time.perf_counter() < end, map(ask, statements)))

    start = time.perf_counter()
    end = start + _SECONDS
    with ThreadPoolExecutor(_CALLERS) as pool:
        return sum(pool.map(call, range(_CALLERS))) / _SECONDS


def bomb(attacker: Caller, other: Caller) -> tuple[float, float]:
    """Return the p95 of another tenant's short query before and while the bombs run, in ms."""
    ask = other.connect()
    calm = p95([time_of(lambda: ask(_SHORT)) for _ in range(200)])
    with ThreadPoolExecutor(len(_BOMBS)) as pool:
        running = [pool.submit(attacker.bomb, statement) for statement in _BOMBS]
        time.sleep(1)
        times = []
        end = time.perf_counter() + _SECONDS
        while time.perf_counter() < end:
            times.append(time_of(lambda: ask(_SHORT)))
        over = [statement for statement, future in zip(_BOMBS, running, strict=True) if future.done()]
        if over:
            raise RuntimeError(f"these statements ended too early: {over}")
    return calm, p95(times)


def p95(times: list[float]) -> float:
    return sorted(times)[int(len(times) * 0.95)]


def time_of(call: Callable[[], object]) -> float:
    """Return the duration of a call in ms."""
    started = time.perf_counter()
    call()
    return (time.perf_counter() - started) * 1000


if __name__ == "__main__":
    main()
