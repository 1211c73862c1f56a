"""Run translated statements on a Spark Connect server. Only `logs.sql.engines.choosing` imports this module.

Needs the optional dependency ``pyspark-client``. Imports no Django.
"""

from __future__ import annotations

import functools
import logging
import re
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql.connect.session import SparkSession
from pyspark.sql.functions import lit

from logs import columns
from logs.sql.collecting import collect, empty_batch
from logs.sql.engines.local import FairSemaphore
from logs.sql.engines.spark_values import SPARK_TYPES
from logs.sql.protocol import (
    EngineUnavailable,
    QueryCancelled,
    QueryFailed,
    QueryResult,
    QueryTimeout,
)
from logs.sql.view import LOG_VIEW

if TYPE_CHECKING:
    from logs.sql.engines.translation import SparkStatement
    from logs.sql.protocol import Cancellation, Limits, LogSource

logger = logging.getLogger(__name__)

#: Days times relations of a statement. Spark plans a union of the days for each relation, and cannot be
#: interrupted while it plans.
MAX_DAY_READS: Final = 400

#: Spark takes other characters of a path for a pattern or a separator.
_PLAIN_PATH: Final = re.compile(r"[A-Za-z0-9_./:=-]+")

_SCHEMA: Final = ", ".join(f"`{column.name}` {SPARK_TYPES[column.type.value]}" for column in columns.COLUMNS)

_SETTINGS: Final = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.caseSensitive": "false",
}

#: Seconds between checks of the deadline and of the cancellation.
_LOOK_SECONDS: Final = 0.02

#: Errors in the values of a query, which its author can correct.
_VALUE_ERRORS: Final = (
    "ARITHMETIC_OVERFLOW",
    "CAST_OVERFLOW",
    "NUMERIC_VALUE_OUT_OF_RANGE",
    "DIVIDE_BY_ZERO",
)


class SparkEngine:
    """Runs each query in its own session on the server at ``url`` (``sc://…``).

    Args:
        root: the URL of the object store for Spark, if its files are not on this machine.
        slots, per_tenant, queue: see `LocalEngine`.
    """

    def __init__(self, *, url: str, root: str, slots: int, per_tenant: int, queue: int) -> None:
        self._url = url
        self._root = root
        self._semaphore = FairSemaphore(slots=slots, per_tenant=per_tenant, queue=queue)

    def run(
        self,
        plan: SparkStatement,
        *,
        source: LogSource,
        limits: Limits,
        deadline: float,
        cancellation: Cancellation | None,
    ) -> QueryResult:
        """Return the rows of a translated statement, with the names and types of DuckDB.

        Args:
            deadline: a time of the monotonic clock.

        Raises:
            ApiError: as `protocol.Engine.execute`.
        """
        if len(plan.reads) * plan.relations > MAX_DAY_READS:
            raise QueryFailed(
                f"The query reads {len(plan.reads)} days in {plan.relations} tables and subqueries."
                f" Days times tables may be {MAX_DAY_READS} on several machines. Narrow the days it reads."
            )
        is_cancelled = cancellation.is_cancelled if cancellation else None
        with self._semaphore.slot(source.tenant_id, deadline=deadline, is_cancelled=is_cancelled):
            query = _SparkQuery(self._url, plan, self._files(source, plan.reads), limits)
            return query.result(deadline=deadline, cancellation=cancellation)

    def _files(self, source: LogSource, reads: tuple[str, ...]) -> dict[str, list[str]]:
        """Return the paths in Spark of the files of each day that is read."""
        needed = set(reads)
        keys = iter(source.keys)
        files: dict[str, list[str]] = {}
        for day in source.days:
            if source.fetch is None:
                own = [f"file://{path}" for path in day.files]
            else:
                own = [f"{self._root}/{next(keys)}" for _ in day.files]
            if day.day in needed:
                files[day.day] = own
        if any(not _PLAIN_PATH.fullmatch(file) for own in files.values() for file in own):
            logger.error("Spark would read the path of a file as a pattern")
            raise EngineUnavailable
        return files


class _SparkQuery:
    """One query in its own thread, which the deadline and the caller can interrupt."""

    def __init__(self, url: str, plan: SparkStatement, files: dict[str, list[str]], limits: Limits) -> None:
        self._url = url
        self._plan = plan
        self._files = files
        self._limits = limits
        self._done = threading.Event()
        self._is_given_up = False
        self._session: Any = None
        self._answer: tuple[list[pa.RecordBatch], bool] | None = None
        self._error: Exception | None = None

    def result(self, *, deadline: float, cancellation: Cancellation | None) -> QueryResult:
        threading.Thread(target=self._read, daemon=True, name="spark-query").start()
        while not self._done.wait(_LOOK_SECONDS):
            is_cancelled = cancellation is not None and cancellation.is_cancelled()
            if is_cancelled or time.monotonic() >= deadline:
                self._is_given_up = True
                # On its own, so that a server that does not answer cannot hold up the caller.
                threading.Thread(target=self._end, daemon=True, name="spark-interrupt").start()
                if is_cancelled:
                    raise QueryCancelled
                raise QueryTimeout(
                    f"The query took longer than {self._limits.seconds:g} seconds."
                    " Narrow the days it reads, or compute less."
                )
        if self._answer is None:
            raise _as_api_error(self._error)
        batches, truncated = self._answer
        batches = batches or [empty_batch(self._plan.schema)]
        return QueryResult(
            columns=self._plan.columns,
            batches=tuple(batches),
            row_count=sum(batch.num_rows for batch in batches),
            truncated=truncated,
            days=self._plan.reads if self._plan.is_repeatable else None,
            engine="spark",
        )

    def _read(self) -> None:
        try:
            self._session = SparkSession(connection=self._url)
            self._session.client.set_retry_policies([])
            for name, value in _SETTINGS.items():
                self._session.conf.set(name, value)
            self._make_view()
            rows = self._session.sql(self._plan.sql).limit(self._limits.max_rows + 1)
            reader = pa.RecordBatchReader.from_batches(self._plan.schema, self._batches(rows))
            _, batches, truncated = collect(
                reader, max_rows=self._limits.max_rows, max_bytes=self._limits.max_bytes
            )
            self._answer = batches, truncated
        except Exception as error:  # noqa: BLE001 - raised again in the thread that waits
            self._error = error
        finally:
            self._done.set()
            self._end()

    def _end(self) -> None:
        """End the running operations of the session on the server, then the session."""
        if self._session is not None:
            try:
                self._session.interruptAll()
            except Exception as error:  # noqa: BLE001 - the server may be gone, or the session released
                logger.info("A query on Spark could not be interrupted: %s", error)
            self._session.stop()

    def _make_view(self) -> None:
        days = []
        for day, files in self._files.items():
            log = self._session.read.schema(_SCHEMA).parquet(*files)
            days.append(log.withColumn(columns.DAY, lit(day)))
        log = functools.reduce(lambda one, other: one.unionAll(other), days)
        needed = {column.name: 0 for column in columns.COLUMNS if column.never_null}
        log.fillna(needed).createOrReplaceTempView(LOG_VIEW)

    def _batches(self, rows: Any) -> Iterator[pa.RecordBatch]:
        """Yield the rows as they come, in DuckDB's types."""
        if self._is_given_up:
            return
        plan = rows._plan.to_proto(self._session.client)
        for part in self._session.client.to_table_as_iterator(plan, {}):
            if isinstance(part, pa.Table):
                for batch in part.to_batches():
                    yield _as_batch(batch, self._plan.schema)


def _as_batch(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch with the types of ``schema``, by position. Values that do not fit are an error."""
    arrays = [_as_type(array, field.type) for array, field in zip(batch.columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _as_type(array: pa.Array[Any], type_: pa.DataType) -> pa.Array[Any]:
    if isinstance(type_, pa.OpaqueType) and type_.type_name == "hugeint":
        # Both are 16 bytes, the lowest first.
        decimals: Any = array.cast(pa.decimal128(38, 0))
        storage = pa.Array.from_buffers(
            pa.binary(16), len(decimals), decimals.buffers(), offset=decimals.offset
        )
        return pa.ExtensionArray.from_storage(type_, storage)
    return array.cast(type_, safe=True)


def _as_api_error(error: Exception | None) -> Exception:
    name = error.getCondition() or "" if isinstance(error, PySparkException) else ""
    if name.startswith(_VALUE_ERRORS):
        return QueryFailed(f"A value does not fit its type ({name}).")
    logger.error("A query on Spark failed: %s", error)
    return EngineUnavailable()
