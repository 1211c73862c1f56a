"""SQL over HTTP beside the same query in a warm DuckDB of this process with as many threads.

Over HTTP means authentication, audit, the guard, a confined process of the tenant, and JSON. A new statement
differs from all before, so that no kept result answers it. Bombs are queries that run until their deadline.
"""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, timedelta
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from statistics import geometric_mean, mean, median
from typing import Any
from uuid import UUID

import duckdb
import psutil
import pyarrow.parquet as pq
from django.conf import settings
from tenantadmin_client import Client, Result

from bench.bare_sql import bare_server, open_engine
from bench.harness import (
    Answer,
    Caller,
    Compared,
    granian,
    medians_in_turn,
    p95,
    show,
    time_of,
    times_in_turn,
)
from logs import columns
from logs.definitions import HIT
from logs.models import Partition
from tests import factories

_DAYS = 30
_FIRST = date(2025, 1, 1)
_CALLERS = 8
_NUMBERS = itertools.count()

_ONE = "2025-01-20"
_WEEK = "day BETWEEN '2025-01-20' AND '2025-01-26'"
_LAST = "row_number() OVER (PARTITION BY userName ORDER BY timestamp DESC)"

#: Typical queries, which tests run on other engines too.
QUERIES = {
    "top statements, week": f"""
        SELECT standardizedSql, count(*) AS n, avg(responseTimeMs) AS ms FROM proxy_logs WHERE {_WEEK}
        GROUP BY 1 ORDER BY n DESC, 1 LIMIT 20""",
    "p95 by hour, day": f"""
        SELECT timestamp // 3600000 AS h, quantile_cont(responseTimeMs, 0.95) FROM proxy_logs
        WHERE day = '{_ONE}' GROUP BY 1 ORDER BY 1""",
    "p95 by day": "SELECT day, quantile_cont(responseTimeMs, 0.95) FROM proxy_logs GROUP BY 1 ORDER BY 1",
    "hit rate per rule": f"""
        SELECT matchedRule, count(*) FILTER (WHERE {HIT}) / count(*) AS rate FROM proxy_logs
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
_SHORT = f"SELECT cacheStatus, count(*) AS n FROM proxy_logs WHERE day = '{_ONE}' GROUP BY 1 ORDER BY 1"

#: Queries that use their processors until the deadline.
_BOMBS = (
    "SELECT sum(hash(a.i, b.i)) FROM range(10000000) a(i), range(10000000) b(i)",
    "SELECT count(*) FROM proxy_logs a, proxy_logs b WHERE levenshtein(a.queryHash, b.queryHash) < 0",
    "SELECT max(list_sum(list_transform(range(3000), lambda x: x * i))) FROM range(100000000) r(i)",
    "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT max(n) FROM t",
)

_STATUSES = ", ".join(f"'{status}'" for status in columns.CACHE_STATUSES)
_VALUES = {
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
class Tenant:
    """A tenant whose log a caller queries."""

    port: int
    token: str
    tenant: UUID

    def connect(self, *, is_new: bool = True) -> Callable[[str], object]:
        """Return a function that runs a statement over a kept connection, for one thread."""
        caller = Caller(self.port, self.token)

        def ask(statement: str) -> None:
            answer = self._query(caller, f"{statement} -- {next(_NUMBERS)}" if is_new else statement)
            _expect_200(answer)

        return ask

    def bomb(self, statement: str) -> int:
        """Send a statement that the service must stop. Return the status."""
        return self._query(Caller(self.port, self.token), statement).status

    def _query(self, caller: Caller, statement: str) -> Answer:
        return caller.send("POST", f"/tenants/{self.tenant}/query", json.dumps({"sql": statement}))


def _expect_200(answer: Answer) -> None:
    if answer.status != 200:
        raise RuntimeError(f"answered {answer.status}: {answer.body[:300]!r}")


def main(directory: Path, *, rows: int = 600_000, runs: int = 9, seconds: int = 6) -> None:
    world = factories.make_world()
    history = factories.make_tenant(world.account, "History", owner=world.owner)
    objects = directory / "objects"
    folder = objects / str(world.tenant.pk) / "compacted"
    write_log(folder, rows_per_day=rows // _DAYS)
    repeat_log(folder, objects / str(history.pk) / "compacted", times=12)
    for tenant in (world.tenant, history):
        register(objects, tenant.pk)
    engine = open_engine(folder, threads=settings.SQL_OPTIONS.limits.threads)
    token = factories.sign_in(world.owner)
    with granian(threads=2 * _CALLERS) as port:
        short, long = (Tenant(port, token, tenant.pk) for tenant in (world.tenant, history))
        with bare_server(folder, threads=settings.SQL_OPTIONS.limits.threads) as bare:
            queries = measure_queries(short, engine, bare, runs=runs)
        show(f"Queries over {rows:,} rows in {_DAYS} days", "ms", queries)
        show(f"{_CALLERS} callers", "/s", [measure_throughput(short, engine, seconds=seconds)])
        tables = [measure_history(short, long, runs=10 * runs), measure_bombs(short, long, seconds=seconds)]
        show("A query of one day", "ms", tables)
        pat = factories.pat_secret(world.owner, "logs:query", tenants=[str(world.tenant.pk)])
        show("A million values", "ms", measure_client(short, pat, directory, runs=runs))


def measure_client(tenant: Tenant, pat: str, directory: Path, *, runs: int) -> list[Compared]:
    """Compare a new query through the Python client with reading its answer from a Parquet file."""
    names = list(itertools.islice(itertools.cycle(_VALUES), 100))
    chosen = ", ".join(f'"{name}" AS c{number}' for number, name in enumerate(names))
    statement = f"SELECT {chosen} FROM proxy_logs WHERE day = '{_ONE}' LIMIT 10000"
    with Client(f"http://127.0.0.1:{tenant.port}", pat) as client:

        def ask() -> Result:
            return client.sql(str(tenant.tenant), f"{statement} -- {next(_NUMBERS)}")

        file = directory / "answer.parquet"
        file.write_bytes(client.sql(str(tenant.tenant), statement).parquet)
        forms: list[tuple[str, Callable[[], Any], Callable[[], Any]]] = [
            ("an Arrow table", lambda: ask().arrow(), partial(pq.read_table, file))
        ]
        if find_spec("pandas"):
            forms.append(("a pandas frame", lambda: ask().pandas(), lambda: pq.read_table(file).to_pandas()))
        rows = []
        for form, asked, read in forms:
            assert asked().shape == (10_000, 100)
            for unit, clock in (("", time.perf_counter), (", processor time", processor_seconds)):
                # A process counts its time in hundredths of a second, so the mean of all runs is taken.
                took = [mean(times) for times in times_in_turn(asked, read, runs=3 * runs, clock=clock)]
                rows.append(Compared(f"a query, as {form}{unit}", took[0], "its Parquet file", took[1], 2))
        return rows


def processor_seconds() -> float:
    """Return the processor time of this process and of all below it, without PostgreSQL and Redis."""
    here = psutil.Process()
    seconds = 0.0
    for process in (here, *here.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):
            if not process.name().startswith(("postgres", "redis")):
                seconds += sum(process.cpu_times()[:2])
    return seconds


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
    Partition.objects.bulk_create(
        Partition(
            tenant_id=tenant,
            day=date.fromisoformat(path.parent.name.removeprefix("day=")),
            listing_digest="bench",
            build="bench",
            file=str(path.relative_to(objects)),
            rows=pq.read_metadata(path).num_rows,
            bytes=path.stat().st_size,
            objects_read=1,
            duplicates=0,
            quarantined=0,
        )
        for path in (objects / str(tenant) / "compacted").glob("*/*.parquet")
    )


def measure_queries(
    tenant: Tenant, engine: duckdb.DuckDBPyConnection, bare: Caller, *, runs: int
) -> list[Compared]:
    """Compare each query over HTTP, new and repeated, with the engine and with a bare server."""
    ask, ask_again = tenant.connect(), tenant.connect(is_new=False)
    new, repeated, beside_bare, above = [], [], [], []
    for title, statement in QUERIES.items():
        works = [
            partial(run, statement)
            for run in (
                ask,
                ask_again,
                lambda text: engine.execute(text).fetchall(),
                lambda text: _expect_200(bare.send("POST", "/", text)),
            )
        ]
        for work in works:
            time_of(work)
        served, kept, alone, over_http = medians_in_turn(*works, runs=runs)
        new.append(Compared(title, served, "engine", alone))
        repeated.append(kept / alone)
        beside_bare.append(served / over_http)
        above.append(served - alone)
    ratio = geometric_mean(row.figure / row.limit for row in new)
    return [
        *new,
        Compared("geometric mean of the ratios", ratio, "", 1, 1.2),
        Compared("the same, beside a bare server", geometric_mean(beside_bare), "", 1, 1.3),
        Compared("the same, repeated, beside the engine", geometric_mean(repeated), "", 1, 0.5),
        Compared("above the engine, median", median(above), "", 1, 4),
    ]


def measure_throughput(tenant: Tenant, engine: duckdb.DuckDBPyConnection, *, seconds: int) -> Compared:
    """Compare the queries per second of eight callers, who run all queries again and again, in turn."""

    def rate(connect: Callable[[], Callable[[str], object]]) -> float:
        def call(number: int) -> int:
            ask = connect()
            statements = itertools.islice(itertools.cycle(QUERIES.values()), number, None)
            return sum(
                1 for _ in itertools.takewhile(lambda _: time.perf_counter() < end, map(ask, statements))
            )

        end = time.perf_counter() + seconds
        with ThreadPoolExecutor(_CALLERS) as pool:
            return sum(pool.map(call, range(_CALLERS))) / seconds

    def of_engine() -> float:
        return rate(lambda: lambda text: engine.cursor().execute(text).fetchall())

    served, alone = zip(*((rate(tenant.connect), of_engine()) for _ in range(3)), strict=True)
    return Compared("new queries", median(served), "engine", median(alone), 0.8)


def measure_history(short: Tenant, long: Tenant, *, runs: int) -> Compared:
    many, few = medians_in_turn(partial(long.connect(), _SHORT), partial(short.connect(), _SHORT), runs=runs)
    return Compared(f"with {12 * _DAYS} days of log", many, f"with {_DAYS} days", few, 1.15)


def measure_bombs(attacker: Tenant, other: Tenant, *, seconds: int) -> Compared:
    """Compare the p95 of another tenant's query while bombs run with before."""
    ask = partial(other.connect(), _SHORT)
    (calm,) = times_in_turn(ask, runs=200)
    with ThreadPoolExecutor(len(_BOMBS)) as pool:
        running = [pool.submit(attacker.bomb, statement) for statement in _BOMBS]
        time.sleep(1)
        end = time.perf_counter() + seconds
        bombed = []
        while time.perf_counter() < end:
            bombed.append(time_of(ask))
        if early := [text for text, future in zip(_BOMBS, running, strict=True) if future.done()]:
            raise RuntimeError(f"these statements ended too early: {early}")
    return Compared(f"p95, {len(_BOMBS)} bombs of another tenant", p95(bombed), "no bomb", p95(calm), 1.5)
