"""Choose between DuckDB on this machine and Spark for each query. Imports no Django."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from logs.sql.engines.translation import DuckdbStatement, SparkStatement
from logs.sql.protocol import QueryRejected

if TYPE_CHECKING:
    from logs.sql.engines.local import LocalEngine
    from logs.sql.engines.spark import SparkEngine
    from logs.sql.options import SqlOptions
    from logs.sql.protocol import Cancellation, Engine, Limits, LogSource, QueryResult


def engine_from(options: SqlOptions, local: LocalEngine) -> Engine:
    """Return the engine of this process. Spark is only imported if ``SQL_SPARK_URL`` is set."""
    if not options.spark_url:
        return local
    from logs.sql.engines.spark import SparkEngine  # noqa: PLC0415 - an optional dependency

    spark = SparkEngine(
        url=options.spark_url,
        root=options.store_url.replace("s3://", "s3a://", 1).rstrip("/"),
        slots=options.slots,
        per_tenant=options.slots_per_tenant,
        queue=options.queue,
    )
    return ChoosingEngine(local=local, spark=spark, from_bytes=options.spark_from_bytes)


class ChoosingEngine:
    """Runs a tenant's queries on Spark where its staff chose so, and the statement can be translated.

    Args:
        from_bytes: the size of the days that a statement reads from which DuckDB does not run it for a tenant
            that may use Spark, and ``auto`` means Spark.
    """

    def __init__(self, *, local: LocalEngine, spark: SparkEngine, from_bytes: int) -> None:
        self._local = local
        self._spark = spark
        self._from_bytes = from_bytes

    def execute(
        self,
        *,
        source: LogSource,
        statement: str,
        limits: Limits,
        cancellation: Cancellation | None = None,
    ) -> QueryResult:
        """See `protocol.Engine.execute`."""
        started = time.monotonic()
        is_large = sum(source.sizes) >= self._from_bytes
        may_use_spark = source.engine == "spark" or (source.engine == "auto" and is_large)
        if may_use_spark and not source.has_positions:
            plan = self._local.translate(
                source=source, statement=statement, limits=limits, cancellation=cancellation
            )
            is_large = self._size(source, plan.reads) >= self._from_bytes
            if isinstance(plan, SparkStatement) and plan.reads and (is_large or source.engine == "spark"):
                return self._spark.run(
                    plan,
                    source=source,
                    limits=limits,
                    deadline=started + limits.seconds,
                    cancellation=cancellation,
                )
            if isinstance(plan, DuckdbStatement) and is_large:
                # Over no rows, DuckDB raises what is wrong with the statement itself.
                self._local.execute(
                    source=replace(source, days=(), keys=(), sizes=(), fetch=None),
                    statement=statement,
                    limits=limits,
                    cancellation=cancellation,
                    started=started,
                )
                raise QueryRejected(
                    f"This query reads too much for one machine, and cannot run on several: {plan.what}."
                    " Narrow the days it reads, or write it without that."
                )
        return self._local.execute(
            source=source, statement=statement, limits=limits, cancellation=cancellation, started=started
        )

    def _size(self, source: LogSource, days: tuple[str, ...]) -> int:
        read = set(days)
        sizes = source.sizes or (0,) * len(source.days)
        return sum(size for day, size in zip(source.days, sizes, strict=True) if day.day in read)
