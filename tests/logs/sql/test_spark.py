"""The same rows from Spark as from DuckDB, value by value.

Needs a Spark Connect server: `make test-sail` starts Sail in this process, `make test-spark` names Apache Spark in
``TEST_SPARK_URL``.
"""

from __future__ import annotations

import json
import os
import random
import re
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from uuid import UUID

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.bench_sql import QUERIES
from logs.sql.engines.choosing import ChoosingEngine
from logs.sql.engines.translation import SparkStatement
from logs.sql.protocol import (
    Cancellation,
    Limits,
    LogSource,
    QueryCancelled,
    QueryFailed,
    QueryRejected,
    QueryTimeout,
)
from logs.sql.results import json_pieces
from tests.logs.sql.spark_statements import OVERFLOWS, STATEMENTS, generate
from tests.logs.sql.statements import ALLOWED
from tests.logs.sql.support import write_day

if TYPE_CHECKING:
    from logs.sql.engines.local import LocalEngine

pytestmark = pytest.mark.spark

#: Enough for a cold server on a busy machine.
LIMITS = Limits(seconds=120)
DAYS = ("2024-02-29", "2025-01-20", "2025-01-21", "2025-01-22")
URL = os.environ.get("TEST_SPARK_URL", "")
TEXTS = (None, "", "a", "A", "ü", "u\u0308", "ß", "😀x", "a$b\\", "a%", "${x}", "it's", "\n", "z" * 300)
NUMBERS = (None, 0, 1, -1, -7, 2**31 - 1, -(2**31), 200, 404)
LARGE = (0, 1, -5, 2**63 - 1, -(2**63), 10**12)


def rows(day: int) -> list[dict[str, object]]:
    """Return 40 rows of edge values; each has its own ``logId`` and ``timestamp``."""
    draw = random.Random(day)
    return [
        {
            "timestamp": day * 86_400_000 + row * 1_000,
            "logId": f"log-{day}-{row:02}",
            "userName": draw.choice(TEXTS),
            "cacheStatus": draw.choice(("HIT", "MISS", None)),
            "standardizedSql": draw.choice(TEXTS),
            "statusCode": draw.choice(NUMBERS),
            "tableCount": draw.choice((None, 0, 1, 2, 3)),
            "requestSize": draw.choice((None, *LARGE)),
            "responseSize": draw.choice(LARGE),
            "responseTimeMs": draw.choice((0, 1, 2, 50)),
            "isReadOnly": draw.choice((True, False, None)),
        }
        for row in range(40)
    ]


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> LogSource:
    """Four days, one of them a leap day and one without a column that younger files have."""
    folder = tmp_path_factory.mktemp("spark") / "tenant" / "compacted"
    days = [
        write_day(folder, DAYS[day], rows(day), without=["xRealIp"] if day == 1 else []) for day in range(3)
    ]
    return LogSource("tenant", (*days, write_day(folder, DAYS[3], [])), engine="spark", sizes=(1,) * 4)


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    from logs.sql.engines.spark import SparkEngine

    server: Any = None
    url = URL
    if not url:
        from pysail.spark import SparkConnectServer

        server = SparkConnectServer("127.0.0.1", 0)
        server.start(background=True)
        url = "sc://{}:{}".format(*server.listening_address)
    yield SparkEngine(url=url, root="", slots=3, per_tenant=3, queue=4)
    if server:
        server.stop()


@pytest.fixture(scope="module")
def both(engine: LocalEngine, spark: Any) -> ChoosingEngine:
    return ChoosingEngine(local=engine, spark=spark, from_bytes=1 << 40)


def answer(engine: ChoosingEngine, source: LogSource, statement: str) -> tuple[str, object, bytes]:
    """Return the engine, and the names, types and rows of its answer."""
    result = engine.execute(source=source, statement=statement, limits=LIMITS)
    text = b"".join(json_pieces(result, tenant=UUID(int=1)))
    return result.engine, (result.columns, result.batches[0].schema), text


@pytest.mark.parametrize("statement", STATEMENTS)
def test_spark_answers_as_duckdb_does(both: ChoosingEngine, log: LogSource, statement: str) -> None:
    expected = answer(both, replace(log, engine="duckdb"), statement)
    assert answer(both, log, statement) == ("spark", *expected[1:])


def test_allowed_statements_answer_alike(engine: LocalEngine, both: ChoosingEngine, log: LogSource) -> None:
    compared = 0
    for allowed in ALLOWED:
        # Which row is left is not said.
        statement = re.sub(r" LIMIT 1(?=;?$|\))", "", allowed)
        plan = engine.translate(source=log, statement=statement, limits=LIMITS)
        if isinstance(plan, SparkStatement) and plan.reads:
            duckdb, spark = (
                rows_of(both, replace(log, engine=name), statement) for name in ("duckdb", "spark")
            )
            assert spark == duckdb, statement
            compared += 1
    assert compared >= 10


def rows_of(engine: ChoosingEngine, source: LogSource, statement: str) -> list[str]:
    """Return the rows as JSON, sorted."""
    rows = json.loads(answer(engine, source, statement)[2])["rows"]
    return sorted(map(json.dumps, rows))


@given(st.randoms(use_true_random=False))
@hypothesis.settings(max_examples=500)
def test_generated_statements_answer_alike(both: ChoosingEngine, log: LogSource, draw: random.Random) -> None:
    statement = generate(draw)
    expected = answer(both, replace(log, engine="duckdb"), statement)
    found = answer(both, log, statement)
    assert found[1:] == expected[1:], statement
    # If no day meets the conditions, nothing is left for Spark.
    assert found[0] == "spark" or '"rowCount":0' in str(found[2]), statement


@pytest.mark.parametrize("statement", QUERIES.values(), ids=QUERIES)
def test_queries_of_the_benchmark_answer_alike(both: ChoosingEngine, log: LogSource, statement: str) -> None:
    """Some run on DuckDB, because part of them is not translated."""
    expected = answer(both, replace(log, engine="duckdb"), statement)
    assert answer(both, log, statement)[1:] == expected[1:]


@pytest.mark.apache
@pytest.mark.parametrize("statement", OVERFLOWS)
def test_a_value_out_of_range_is_an_error(both: ChoosingEngine, log: LogSource, statement: str) -> None:
    for engine in ("duckdb", "spark"):
        with pytest.raises(QueryFailed):
            answer(both, replace(log, engine=engine), statement)


def test_limits_cut_the_answer(both: ChoosingEngine, log: LogSource) -> None:
    statement = "SELECT logId, standardizedSql FROM proxy_logs ORDER BY logId"
    for limits in (replace(LIMITS, max_rows=7), replace(LIMITS, max_bytes=5_000)):
        cut = [
            both.execute(source=replace(log, engine=engine), statement=statement, limits=limits)
            for engine in ("duckdb", "spark")
        ]
        assert [result.truncated for result in cut] == [True, True]
        # Arrow's buffers of the two engines differ by a few bytes.
        assert abs(cut[0].row_count - cut[1].row_count) <= 1 < cut[1].row_count


_BOMB = "SELECT count(*) FROM {} WHERE {} = 'x'".format(
    ", ".join(f"proxy_logs t{i}" for i in range(8)), " || ".join(f"t{i}.userName" for i in range(8))
)


@pytest.mark.apache
def test_a_bomb_ends_at_the_deadline(both: ChoosingEngine, log: LogSource) -> None:
    answer(both, log, "SELECT count(*) FROM proxy_logs")
    started = time.monotonic()
    with pytest.raises(QueryTimeout):
        both.execute(source=log, statement=_BOMB, limits=replace(LIMITS, seconds=3))
    assert time.monotonic() - started < 5
    # The server ends it, too, by the executor if need be (docs/scaling.md): the next query finds the processors free.
    started = time.monotonic()
    answer(both, log, "SELECT count(*) FROM proxy_logs")
    assert time.monotonic() - started < 60


def test_a_cancelled_query_ends(both: ChoosingEngine, log: LogSource) -> None:
    cancellation = Cancellation()
    cancellation.cancel()
    with pytest.raises(QueryCancelled):
        both.execute(source=log, statement=_BOMB, limits=LIMITS, cancellation=cancellation)


def test_untranslated_statements_run_on_duckdb_unless_they_are_too_large(
    engine: LocalEngine, spark: Any, log: LogSource
) -> None:
    statement = "SELECT hash(day) FROM proxy_logs WHERE day = '2025-01-20' LIMIT 1"
    small = ChoosingEngine(local=engine, spark=spark, from_bytes=2)
    assert answer(small, log, statement)[0] == "duckdb"
    large = ChoosingEngine(local=engine, spark=spark, from_bytes=1)
    with pytest.raises(QueryRejected, match='function "hash"'):
        answer(large, log, statement)


def test_auto_decides_by_the_bytes_of_the_days_that_are_read(
    engine: LocalEngine, spark: Any, log: LogSource
) -> None:
    both = ChoosingEngine(local=engine, spark=spark, from_bytes=2)
    chosen = replace(log, engine="auto")
    assert answer(both, chosen, "SELECT count(*) FROM proxy_logs")[0] == "spark"
    one_day = "SELECT count(*) FROM proxy_logs WHERE day = '2025-01-20'"
    assert answer(both, chosen, one_day)[0] == "duckdb"
