"""Send a request to a query process, and read its answer before the deadline."""

from __future__ import annotations

import select
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from logs.sql import wire
from logs.sql.errors import QueryCancelled, QueryFailed, QueryTimeout

if TYPE_CHECKING:
    from logs.sql.cancellation import Cancellation
    from logs.sql.priority import QueryPriority
    from logs.sql.process import QueryProcess
    from logs.sql.protocol import Limits, LogSource

#: Bytes by which the Arrow stream of a result may exceed ``max_bytes``, and maximum bytes of a frame's head.
_FRAMING_BYTES: Final = 8 << 20


class ProcessDiedBeforeReply(Exception):
    """The process ended before it replied that the statement is allowed or refused."""


class Exchange:
    """The request to one query process, and its answer."""

    def __init__(
        self,
        process: QueryProcess,
        priority: QueryPriority,
        *,
        deadline: float,
        limits: Limits,
        cancellation: Cancellation | None,
        translate: bool = False,
    ) -> None:
        self._process = process
        self._translate = translate
        self._priority = priority
        self._deadline = deadline
        self._limits = limits
        self._cancellation = cancellation
        self._poll = select.poll()
        self._poll.register(process.channel, select.POLLIN)
        if cancellation:
            self._poll.register(cancellation, select.POLLIN)
        self._checked: dict[str, Any] | None = None

    def run(self, source: LogSource, statement: str) -> tuple[dict[str, Any], bytearray]:
        """Send the request. Return the JSON and the body of the answer.

        Raises:
            QueryTimeout: there was no answer before the deadline.
            QueryFailed: the answer is too large, or the process crashed.
            QueryCancelled: the caller cancelled the query.
            ProcessDiedBeforeReply: a second process may answer.
        """
        folder = source.folder
        if source.fetch is not None and folder:
            Path(folder).mkdir(parents=True, exist_ok=True)
        request = wire.Request(
            statement=statement,
            folder=folder,
            files=tuple(file[len(folder) + 1 :] for day in source.days for file in day.files),
            days=tuple(day.day for day in source.days for _ in day.files),
            wait=source.fetch is not None,
            has_positions=source.has_positions,
            seconds=max(self._deadline - time.monotonic(), 0.001),
            max_rows=self._limits.max_rows,
            max_bytes=self._limits.max_bytes,
            max_columns=self._limits.max_columns,
            translate=self._translate,
        )
        channel = self._process.channel
        try:
            channel.settimeout(self._limits.seconds)
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
            if length > self._limits.max_bytes + _FRAMING_BYTES:
                raise QueryFailed("The result is larger than allowed.")
            return document, self._read(length)
        except (wire.ConnectionEnded, BrokenPipeError, ConnectionResetError):
            if time.monotonic() >= self._deadline:
                raise self._timeout() from None
            if self._checked is None:
                raise ProcessDiedBeforeReply from None
            raise crashed(self._limits) from None

    def _read_head(self) -> dict[str, Any]:
        length = wire.decode_length(self._read(wire.LENGTH_BYTES))
        if length > _FRAMING_BYTES:
            raise QueryFailed("The result's names and types are larger than allowed.")
        return wire.decode_head(self._read(length))

    def _read(self, length: int) -> bytearray:
        """Read ``length`` bytes before the deadline."""
        data = bytearray(length)
        view = memoryview(data)
        while view:
            self._wait()
            count = self._process.channel.recv_into(view)
            if count == 0:
                raise wire.ConnectionEnded
            view = view[count:]
        return data

    def _wait(self) -> None:
        while True:
            now = time.monotonic()
            if now >= self._deadline:
                raise self._timeout()
            until = min(self._deadline, self._priority.next_update_at)
            # Rounded up: in the last millisecond, polls of 0 ms would be a busy loop.
            if self._poll.poll(int(max(until - now, 0) * 1000) + 1):
                if self._cancellation and self._cancellation.is_cancelled():
                    raise QueryCancelled
                return
            if time.monotonic() >= self._priority.next_update_at:
                self._priority.update()

    def _timeout(self) -> QueryTimeout:
        message = f"The query took longer than {self._limits.seconds:g} seconds."
        if self._checked and self._checked["readsLog"] and not self._checked["namesDay"]:
            message += (
                " It names no day, so it reads the tenant's whole history: add a predicate such as"
                " day >= '2026-01-31'."
            )
        elif self._checked:
            message += " Narrow the days it reads, or compute less."
        return QueryTimeout(message)


def crashed(limits: Limits) -> QueryFailed:
    """Return the error of a query whose process ended."""
    return QueryFailed(
        "The engine stopped while it ran this query: it needs more memory than a query may use"
        f" ({limits.memory_bytes >> 20} MiB), or nests too deeply."
    )
