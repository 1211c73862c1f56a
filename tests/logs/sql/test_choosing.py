"""Which engine runs a query, and what is translated for Spark. Needs no Spark."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from accounts.models import TenantConfig
from logs.models import Partition, QueryRun
from logs.sources import log_source
from logs.sql.engines.choosing import ChoosingEngine
from logs.sql.engines.translation import DuckdbStatement, SparkStatement
from logs.sql.protocol import (
    Limits,
    LogSource,
    QueryFailed,
    QueryRejected,
    QueryResult,
    QueryTimeout,
)
from tenantadmin.lib.objectstore import default_store
from tests import factories
from tests.conftest import ApiClient
from tests.logs.sql.spark_statements import OVERFLOWS, STATEMENTS, generate
from tests.logs.sql.statements import REFUSED
from tests.logs.sql.support import write_day

if TYPE_CHECKING:
    from logs.sql.engines.local import LocalEngine
    from tests.factories import World

COUNT = "SELECT count(*) FROM proxy_logs"
ONE_DAY = "SELECT count(*) FROM proxy_logs WHERE day = '2026-03-01'"
LIMITS = Limits()


class Spark:
    """Answers with DuckDB's rows, and remembers what it was asked."""

    def __init__(self, engine: LocalEngine) -> None:
        self._engine = engine
        self.plans: list[SparkStatement] = []

    def run(self, plan: SparkStatement, *, source: LogSource, limits: Limits, **_: Any) -> QueryResult:
        self.plans.append(plan)
        result = self._engine.execute(source=source, statement=COUNT, limits=limits)
        return replace(result, engine="spark")


class SlowTranslation:
    """The engine of this machine, whose translations take more than a second."""

    def __init__(self, engine: LocalEngine) -> None:
        self.execute = engine.execute
        self._engine = engine

    def translate(self, **arguments: Any) -> SparkStatement | DuckdbStatement:
        time.sleep(1.1)
        return self._engine.translate(**arguments)


@pytest.fixture
def spark(engine: LocalEngine) -> Spark:
    return Spark(engine)


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> LogSource:
    """Two days of 10 and 20 bytes, as far as is said."""
    folder: Path = tmp_path_factory.mktemp("choosing") / "tenant" / "compacted"
    days = [write_day(folder, day, [{"logId": day}]) for day in ("2026-03-01", "2026-03-02")]
    return LogSource("tenant", tuple(days), sizes=(10, 20))


def engine_of(
    engine: LocalEngine, spark: Any, source: LogSource, statement: str, *, from_bytes: int = 1 << 40
) -> str:
    chosen = ChoosingEngine(local=engine, spark=spark, from_bytes=from_bytes)
    return chosen.execute(source=source, statement=statement, limits=LIMITS).engine


@pytest.mark.parametrize(
    ("chosen", "statement", "from_bytes", "expected"),
    [
        ("duckdb", COUNT, 0, "duckdb"),
        ("spark", COUNT, 1 << 40, "spark"),
        ("auto", COUNT, 31, "duckdb"),
        ("auto", COUNT, 30, "spark"),
        # The bytes of the days that are left, not of the log.
        ("auto", ONE_DAY, 11, "duckdb"),
        ("auto", ONE_DAY, 10, "spark"),
        # No file is read, so nothing is large.
        ("spark", "SELECT 1", 0, "duckdb"),
        ("spark", "SELECT hash(logId) FROM proxy_logs", 31, "duckdb"),
    ],
)
def test_the_staffs_choice_and_the_bytes_decide(
    engine: LocalEngine,
    spark: Spark,
    log: LogSource,
    chosen: str,
    statement: str,
    from_bytes: int,
    expected: str,
) -> None:
    source = replace(log, engine=chosen)
    assert engine_of(engine, spark, source, statement, from_bytes=from_bytes) == expected
    assert [plan.reads for plan in spark.plans] == (
        [("2026-03-01",) if statement == ONE_DAY else ("2026-03-01", "2026-03-02")]
        if expected == "spark"
        else []
    )


def test_a_large_untranslated_statement_is_refused_by_name(
    engine: LocalEngine, spark: Spark, log: LogSource
) -> None:
    source = replace(log, engine="auto")
    with pytest.raises(QueryRejected, match='function "hash"'):
        engine_of(engine, spark, source, "SELECT hash(logId) FROM proxy_logs", from_bytes=30)
    assert spark.plans == []


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("SELECT userNam FROM proxy_logs", 'Candidate bindings: "userName"'),
        ("SELECT day FROM proxy_logs GROUP BY 7", "GROUP BY term out of range"),
        ("SELECT * FROM (SELECT day FROM proxy_logs) t(x, y)", "has 1 columns available but 2 columns"),
    ],
)
def test_a_wrong_statement_over_many_rows_names_its_error(
    engine: LocalEngine, spark: Spark, log: LogSource, statement: str, message: str
) -> None:
    with pytest.raises(QueryFailed, match=message):
        engine_of(engine, spark, replace(log, engine="auto"), statement, from_bytes=1)


def test_the_time_of_the_translation_counts(engine: LocalEngine, spark: Any, log: LogSource) -> None:
    """A query has the time that its translation left, here none."""
    slow = cast("LocalEngine", SlowTranslation(engine))
    chosen = ChoosingEngine(local=slow, spark=spark, from_bytes=1 << 40)
    source = replace(log, engine="spark")
    with pytest.raises(QueryTimeout, match="longer than 1 second"):
        chosen.execute(source=source, statement="SELECT 1", limits=replace(LIMITS, seconds=1))


def test_refused_statements_never_reach_spark(engine: LocalEngine, spark: Spark, log: LogSource) -> None:
    source = replace(log, engine="spark")
    for statement in REFUSED:
        with pytest.raises(QueryRejected):
            engine_of(engine, spark, source, statement)
    assert spark.plans == []


@pytest.mark.parametrize("statement", [*STATEMENTS, *OVERFLOWS])
def test_known_constructs_are_translated(engine: LocalEngine, log: LogSource, statement: str) -> None:
    plan = engine.translate(source=log, statement=statement, limits=LIMITS)
    assert isinstance(plan, SparkStatement), plan
    # No name of the statement is in the text.
    assert "proxy_logs p" not in plan.sql


def test_generated_statements_are_translated(engine: LocalEngine, log: LogSource) -> None:
    for seed in range(60):
        statement = generate(random.Random(seed))  # noqa: S311 - repeatable
        assert isinstance(engine.translate(source=log, statement=statement, limits=LIMITS), SparkStatement), (
            statement
        )


@pytest.mark.parametrize(
    ("statement", "what"),
    [
        ("SELECT upper(userName) FROM proxy_logs", "upper"),
        ("SELECT dayofweek(day::DATE) FROM proxy_logs", "DATE"),
        ("SELECT regexp_replace(userName, 'a', 'b') FROM proxy_logs", "regexp_replace"),
        ("SELECT substr(userName, 0, 2) FROM proxy_logs", "substr"),
        ("SELECT json_extract(tables, '$[0]') FROM proxy_logs", "json_extract"),
        ("SELECT avg(responseTimeMs) FROM proxy_logs", "avg"),
        ("SELECT approx_count_distinct(userName) FROM proxy_logs", "approx_count_distinct"),
        ("SELECT median(responseTimeMs) FROM proxy_logs", "median"),
        ("SELECT now(), logId FROM proxy_logs", "now"),
        ("SELECT logId FROM proxy_logs USING SAMPLE 1 ROWS", ""),
        ("SELECT 2.5::INT, logId FROM proxy_logs", ""),
        (
            "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT 2) SELECT n, logId FROM t, proxy_logs",
            "",
        ),
        ("SELECT logId FROM proxy_logs WHERE userName LIKE 'a\\%'", ""),
        (f"SELECT count(*) FROM {', '.join(f'proxy_logs t{i}' for i in range(9))}", "more than 8 tables"),
        ("SELECT day, count(*) FROM proxy_logs GROUP BY ROLLUP(day)", "GROUPING SETS"),
        ("SELECT day, count(*) FROM proxy_logs GROUP BY CUBE(day, cacheStatus)", "GROUPING SETS"),
        ("SELECT day, count(*) FROM proxy_logs GROUP BY GROUPING SETS ((day), ())", "GROUPING SETS"),
        ("SELECT count(*) FROM proxy_logs GROUP BY GROUPING SETS ((), ())", "GROUPING SETS"),
        ("SELECT 1 AS a FROM proxy_logs GROUP BY ()", "GROUPING SETS"),
        ("WITH t(x, y) AS (SELECT day FROM proxy_logs) SELECT * FROM t", "more names"),
        ("SELECT * FROM (SELECT day FROM proxy_logs) t(x, y)", "more names"),
        ("SELECT lag(day, -1) OVER (ORDER BY logId) FROM proxy_logs", "the offset of lag"),
        ("SELECT statusCode + count(*) AS d FROM proxy_logs GROUP BY ALL", "GROUP BY ALL"),
    ],
)
def test_unknown_constructs_are_not_translated(
    engine: LocalEngine, log: LogSource, statement: str, what: str
) -> None:
    plan = engine.translate(source=log, statement=statement, limits=LIMITS)
    assert isinstance(plan, DuckdbStatement), plan
    assert what in plan.what


@pytest.mark.slow
def test_without_the_setting_nothing_of_spark_is_imported() -> None:
    code = (
        "import django, sys; django.setup(); from logs.queries import get_engine; get_engine();"
        " sys.exit('logs.sql.engines.spark' in sys.modules or 'pyspark' in sys.modules)"
    )
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings"}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)


def test_the_choice_for_a_tenant_comes_with_its_files(world: World) -> None:
    tenant = world.tenant.pk
    for day, size in (("2026-03-01", 7), ("2026-03-02", 5)):
        Partition.objects.create(
            tenant_id=tenant,
            day=day,
            listing_digest="d",
            build="b",
            file=f"{tenant}/compacted/day={day}/b.parquet",
            more_files=[f"{tenant}/compacted/day={day}/c.parquet"],
            rows=1,
            bytes=size,
            objects_read=1,
            duplicates=0,
            quarantined=0,
        )
    TenantConfig.objects.filter(pk=tenant).update(sql_engine="auto")
    source = log_source(default_store(), tenant=tenant)
    assert (source.engine, source.sizes) == ("auto", (7, 5))
    assert log_source(default_store(), tenant=world.stranger_tenant.pk).engine == "duckdb"


def test_an_answer_and_the_audit_name_the_engine(world: World) -> None:
    client = ApiClient(factories.sign_in(world.member))
    answer = client.post(f"/tenants/{world.tenant.pk}/query", {"sql": "SELECT 1 AS n"})
    assert (answer.status_code, answer["X-Engine"]) == (200, "duckdb")
    assert QueryRun.objects.get().engine == "duckdb"
    client.post(f"/tenants/{world.tenant.pk}/query", {"sql": "SELECT nothing"})
    assert QueryRun.objects.latest("pk").engine == ""
