"""Send a request to a query process, and read its answer before the deadline."""

from __future__ import annotations

import json
import logging
import re
import select
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from logs.sql import wire
from logs.sql.collecting import as_integers, empty_batch, with_plain_booleans
from logs.sql.protocol import EngineUnavailable, QueryCancelled, QueryFailed, QueryTimeout, ResultColumn

if TYPE_CHECKING:
    from logs.sql.engines.pool import QueryPriority, QueryProcess
    from logs.sql.protocol import Cancellation, Limits, LogSource

logger = logging.getLogger(__name__)

#: A quoted name in a DuckDB type.
_QUOTED_NAME: Final = re.compile(r'"((?:[^"]|"")*)"')

#: Characters of a name that a message quotes.
_NAME_CHARACTERS: Final = 60

#: Kinds of answers that have rows.
_WITH_ROWS: Final = frozenset({"result", "translated"})

#: How much the Arrow stream of a result may exceed ``max_bytes``; also the maximum size of a frame's head.
_FRAMING_BYTES: Final = 8 << 20


class ProcessDied(Exception):
    """The process ended before its answer was complete.

    ``has_replied``: it had replied that the statement is allowed. ``was_killed``: from outside.
    """

    def __init__(self, *, has_replied: bool) -> None:
        super().__init__()
        self.has_replied = has_replied
        self.was_killed = False


@dataclass(frozen=True, slots=True)
class Job:
    """A statement for a query process to run, or to ``translate`` for Spark.

    ``deadline`` is a time of the monotonic clock.
    """

    source: LogSource
    statement: str
    limits: Limits
    deadline: float
    cancellation: Cancellation | None
    translate: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """The JSON that a query process sent, and its rows: a result or a translation has at least one batch."""

    document: dict[str, Any]
    columns: tuple[ResultColumn, ...]
    batches: tuple[pa.RecordBatch, ...]

    @property
    def is_reusable(self) -> bool:
        """True if the process may answer the tenant's next query."""
        return self.document["kind"] in wire.ORDINARY_KINDS and self.document["isReusable"] is True


class Exchange:
    """Sends one job to a query process and reads the answer."""

    def __init__(self, process: QueryProcess, priority: QueryPriority, job: Job) -> None:
        self._process = process
        self._priority = priority
        self._job = job
        self._poll = select.poll()
        self._poll.register(process.channel, select.POLLIN)
        if job.cancellation:
            self._poll.register(job.cancellation, select.POLLIN)
        self._checked: dict[str, Any] | None = None

    def send(self) -> Answer:
        """Send the job and return the answer.

        Raises:
            QueryTimeout: there was no answer before the deadline.
            QueryFailed: the answer is too large or has names with NUL.
            QueryCancelled: the caller cancelled the query.
            ProcessDied: the process ended.
            EngineUnavailable: the rows are invalid.
        """
        source, limits = self._job.source, self._job.limits
        folder = source.folder
        if source.fetch is not None and folder:
            Path(folder).mkdir(parents=True, exist_ok=True)
        request = wire.Request(
            statement=self._job.statement,
            folder=folder,
            files=tuple(file[len(folder) + 1 :] for day in source.days for file in day.files),
            days=tuple(day.day for day in source.days for _ in day.files),
            wait=source.fetch is not None,
            has_positions=source.has_positions,
            seconds=max(self._job.deadline - time.monotonic(), 0.001),
            max_rows=limits.max_rows,
            max_bytes=limits.max_bytes,
            max_columns=limits.max_columns,
            translate=self._job.translate,
        )
        channel = self._process.channel
        try:
            channel.settimeout(limits.seconds)
            channel.sendall(wire.encode(request.as_json()))
            document = self._read_head()
            if document["kind"] == "checked":
                self._checked = document
                if source.fetch is not None:
                    # Do not trust the process: fetch only the tenant's files.
                    source.fetch([f"{folder}/{file}" for file in document["files"] if file in request.files])
                    channel.sendall(wire.encode({}))
                document = self._read_head()
            length = int(document["body"])
            if length > limits.max_bytes + _FRAMING_BYTES:
                raise QueryFailed("The result is larger than allowed.")
            # A bytearray would be cleared first: all threads would wait 16 ms for 32 MiB.
            body = pa.allocate_buffer(length)
            self._fill(memoryview(body))
        except (wire.ConnectionEnded, BrokenPipeError, ConnectionResetError):
            if time.monotonic() >= self._job.deadline:
                raise self._timeout() from None
            raise ProcessDied(has_replied=self._checked is not None) from None
        columns, batches = _read_rows(document, body) if document["kind"] in _WITH_ROWS else ((), ())
        return Answer(document, columns, batches)

    def _read_head(self) -> dict[str, Any]:
        length = wire.decode_length(self._read(wire.LENGTH_BYTES))
        if length > _FRAMING_BYTES:
            raise QueryFailed("The result's names and types are larger than allowed.")
        return wire.decode_head(self._read(length))

    def _read(self, length: int) -> bytearray:
        """Read ``length`` bytes before the deadline."""
        data = bytearray(length)
        self._fill(memoryview(data))
        return data

    def _fill(self, view: memoryview) -> None:
        """Read as many bytes as ``view`` has, before the deadline."""
        while view:
            self._wait()
            count = self._process.channel.recv_into(view)
            if count == 0:
                raise wire.ConnectionEnded
            view = view[count:]

    def _wait(self) -> None:
        while True:
            now = time.monotonic()
            if now >= self._job.deadline:
                raise self._timeout()
            until = min(self._job.deadline, self._priority.next_update_at)
            # Rounded up: in the last millisecond, polls of 0 ms would be a busy loop.
            if self._poll.poll(int(max(until - now, 0) * 1000) + 1):
                if self._job.cancellation and self._job.cancellation.is_cancelled():
                    raise QueryCancelled
                return
            if time.monotonic() >= self._priority.next_update_at:
                self._priority.update()

    def _timeout(self) -> QueryTimeout:
        message = f"The query took longer than {self._job.limits.seconds:g} seconds."
        if self._checked and self._checked["readsLog"] and not self._checked["namesDay"]:
            message += (
                " It names no day, so it reads the tenant's whole history: add a predicate such as"
                " day >= '2026-01-31'."
            )
        elif self._checked:
            message += " Narrow the days it reads, or compute less."
        return QueryTimeout(message)


def crashed(limits: Limits) -> QueryFailed:
    """Return the error of a query that ended its process."""
    return QueryFailed(
        "The engine stopped while it ran this query: it needs more memory than a query may use"
        f" ({limits.memory_bytes >> 20} MiB), or nests too deeply."
    )


def _read_rows(
    document: dict[str, Any], body: pa.Buffer
) -> tuple[tuple[ResultColumn, ...], tuple[pa.RecordBatch, ...]]:
    for name, type_ in document["columns"]:
        _refuse_nul_in_names(name, type_)
    try:
        with pa.ipc.open_stream(body) as reader:
            batches = tuple(_validate(batch) for batch in reader) or (_validate(empty_batch(reader.schema)),)
    except pa.ArrowException:
        logger.exception("A query process sent an invalid result")
        raise EngineUnavailable from None
    names = unique_names(name for name, _ in document["columns"])
    columns = tuple(
        ResultColumn(name, type_) for name, (_, type_) in zip(names, document["columns"], strict=True)
    )
    return columns, batches


def _refuse_nul_in_names(column: str, type_: str) -> None:
    """Raise `QueryFailed` for a name with NUL. Arrow ends names there, so two fields could get one name."""
    for name in (column, *_QUOTED_NAME.findall(type_)):
        if "\0" in name:
            raise QueryFailed(
                f"The name {json.dumps(name[:_NAME_CHARACTERS], ensure_ascii=False)} contains NUL, which is"
                " not allowed in names of a result. Choose another name, or cast the value to JSON."
            )


def _validate(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the batch with plain booleans if its memory is what its types say.

    Raises:
        ArrowException: it is not.
    """
    columns = []
    for column in batch.columns:
        column.validate()
        as_integers(column).validate(full=True)
        columns.append(with_plain_booleans(column))
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def unique_names(names: Iterable[str]) -> list[str]:
    """Add the first free suffix ``_1``, ``_2``, … to each repetition of a name."""
    names = list(names)
    taken = set(names)
    seen: set[str] = set()
    unique: list[str] = []
    last_suffix: dict[str, int] = {}
    for name in names:
        result = name
        if name in seen:
            suffix = last_suffix.get(name, 0) + 1
            while f"{name}_{suffix}" in taken:
                suffix += 1
            last_suffix[name] = suffix
            result = f"{name}_{suffix}"
            taken.add(result)
        seen.add(name)
        unique.append(result)
    return unique
