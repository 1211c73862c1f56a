"""An engine that sends queries to a SQL service over HTTP (`logs.sql.service`), and their messages.

A query is JSON, its result an Arrow stream, an error JSON. Both sides import this module; it imports no
Django.

Implements `protocol.Engine`.
"""

from __future__ import annotations

import http
import json
import logging
import select
import time
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pyarrow as pa
import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import HTTPError, ProtocolError, ReadTimeoutError

from logs.sql import guard
from logs.sql.protocol import (
    EngineUnavailable,
    Limits,
    LogSource,
    QueryCancelled,
    QueryFailed,
    QueryInterrupted,
    QueryRejected,
    QueryResult,
    QueryTimeout,
    ResultColumn,
)
from logs.sql.refusals import Refusal, with_position
from tenantadmin.lib.core.request_context import REQUEST_ID_HEADER, current_request_id

if TYPE_CHECKING:
    from urllib3 import HTTPResponse

    from logs.sql.protocol import Cancellation, Limits, LogSource
    from tenantadmin.lib.core.errors import ApiError

PATH: Final = "/execute"

RESULT_TYPE: Final = "application/vnd.apache.arrow.stream"

#: The key of a result's description in the metadata of the Arrow schema.
_DESCRIPTION: Final = b"tenantadmin.result"

#: The errors for the author of a query, with their statuses. All others are faults of the service.
_QUERY_ERRORS: Final[Mapping[str, type[ApiError]]] = {
    error.code: error for error in (QueryRejected, QueryFailed, QueryTimeout, QueryInterrupted)
}

ERROR_STATUSES: Final = frozenset(error.status for error in _QUERY_ERRORS.values())


class InvalidMessage(Exception):
    """The other side sent a message that cannot be decoded."""


@dataclass(frozen=True, slots=True)
class Query:
    """One query. ``files`` are pairs of a day and an object key."""

    tenant: str
    files: tuple[tuple[str, str], ...]
    statement: str
    limits: Limits
    has_positions: bool = False
    sizes: tuple[int, ...] = ()
    engine: str = "duckdb"

    @classmethod
    def over(cls, source: LogSource, statement: str, limits: Limits) -> Query:
        """Return the query of ``statement`` over a source that has keys."""
        days = [day.day for day in source.days for _ in day.files]
        files = tuple(zip(days, source.keys, strict=True))
        return cls(
            source.tenant_id, files, statement, limits, source.has_positions, source.sizes, source.engine
        )


def encode_query(query: Query) -> bytes:
    return msgspec.json.encode(query)


def decode_query(body: bytes) -> Query:
    """Raises `InvalidMessage`."""
    try:
        return msgspec.json.decode(body, type=Query)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise InvalidMessage(f"not a query: {error}") from None


def encode_result(result: QueryResult) -> bytes:
    description = {
        "columns": [[column.name, column.type] for column in result.columns],
        "truncated": result.truncated,
        # Web processes of earlier releases expect it.
        "elapsed_ms": 0,
        "days": result.days,
        "engine": result.engine,
    }
    schema = result.batches[0].schema
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(
        sink, schema.with_metadata({_DESCRIPTION: json.dumps(description).encode()})
    ) as writer:
        for batch in result.batches:
            writer.write_batch(batch)
    return bytes(memoryview(sink.getvalue()))


def decode_result(body: bytes) -> QueryResult:
    """Raises `InvalidMessage`."""
    try:
        with pa.ipc.open_stream(pa.py_buffer(body)) as reader:
            description = json.loads((reader.schema.metadata or {})[_DESCRIPTION])
            batches = tuple(reader)
        for batch in batches:
            batch.validate()
        return QueryResult(
            columns=tuple(ResultColumn(name, type_) for name, type_ in description["columns"]),
            batches=batches,
            row_count=sum(batch.num_rows for batch in batches),
            truncated=bool(description["truncated"]),
            days=None if description.get("days") is None else tuple(description["days"]),
            engine=str(description.get("engine", "duckdb")),
        )
    except (pa.ArrowException, ValueError, KeyError, TypeError) as error:
        raise InvalidMessage(f"not a result: {error}") from None


def encode_error(error: ApiError) -> bytes:
    return msgspec.json.encode({"error": error.code, "message": error.text})


def decode_error(body: bytes) -> ApiError:
    """Return the error to raise. Raises `InvalidMessage` if it is not an error for a query's author."""
    try:
        document: dict[str, Any] = json.loads(body)
        return _QUERY_ERRORS[document["error"]](str(document["message"]))
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidMessage(f"not an error of a query: {error!r}") from None


logger = logging.getLogger(__name__)

#: Seconds to wait for a connection. The service accepts connections even if all of its slots are taken.
_CONNECT_SECONDS: Final = 2.0

#: Seconds after the deadline at which this engine gives up, in case the service does not answer.
_GRACE_SECONDS: Final = 2.0

#: Attempts to connect, with pauses of 0.2 and 0.4 seconds: enough while the service restarts.
_CONNECT_ATTEMPTS: Final = 3

#: If a request fails sooner, the service had already closed the kept-alive connection.
_STALE_CONNECTION_SECONDS: Final = 0.1

#: How many bytes the Arrow stream of a result may exceed ``max_bytes``.
_FRAMING_BYTES: Final = 8 << 20

#: Cancels the query of this thread. urllib3 has no other way to pass it to the connection.
_cancellation: ContextVar[Cancellation | None] = ContextVar("cancellation", default=None)


def _wait_for_response(connection: HTTPConnection) -> None:
    """Wait until the response begins, or its time is over: then the connection raises an error.

    Raises:
        QueryCancelled: the query was cancelled first.
    """
    cancellation = _cancellation.get()
    if cancellation is None or not isinstance(connection.timeout, int | float):
        return
    poll = select.poll()
    poll.register(connection.sock, select.POLLIN)
    poll.register(cancellation, select.POLLIN)
    poll.poll(connection.timeout * 1000)
    if cancellation.is_cancelled():
        # The service ends the query when the connection is closed.
        connection.close()
        raise QueryCancelled


class _Connection(HTTPConnection):
    def getresponse(self) -> HTTPResponse:  # type: ignore[override] # as in urllib3
        _wait_for_response(self)
        return super().getresponse()


class _SecureConnection(HTTPSConnection):
    def getresponse(self) -> HTTPResponse:  # type: ignore[override] # as in urllib3
        _wait_for_response(self)
        return super().getresponse()


class _Pool(urllib3.HTTPConnectionPool):
    ConnectionCls = _Connection


class _SecurePool(urllib3.HTTPSConnectionPool):
    ConnectionCls = _SecureConnection


class RemoteEngine:
    """Sends queries to the SQL service at ``url``. Keeps up to ``connections`` connections alive.

    If this process closes a connection, because it gives up or ends, the service ends the query.
    """

    def __init__(self, *, url: str, secret: str, connections: int = 64) -> None:
        self._url = url + PATH
        self._headers = {"Authorization": f"Bearer {secret}", "Content-Type": "application/json"}
        self._pool = urllib3.PoolManager(maxsize=connections, retries=False)
        self._pool.pool_classes_by_scheme = {"http": _Pool, "https": _SecurePool}

    def execute(
        self,
        *,
        source: LogSource,
        statement: str,
        limits: Limits,
        cancellation: Cancellation | None = None,
    ) -> QueryResult:
        """See `protocol.Engine.execute`."""
        try:
            guard.check_text(statement)
        except Refusal as refusal:
            raise QueryRejected(with_position(refusal.message, statement, refusal.position)) from None
        query = Query.over(source, statement, limits)
        token = _cancellation.set(cancellation)
        try:
            status, body = self._post(query)
            if status == http.HTTPStatus.OK:
                return decode_result(body)
            if status in ERROR_STATUSES:
                raise decode_error(body)
            if status == http.HTTPStatus.UNAUTHORIZED:
                logger.error("The SQL service refuses SQL_SERVICE_SECRET: set the same one there and here")
            else:
                logger.error("The SQL service answered %s: %s", status, body[:500])
        except InvalidMessage:
            logger.exception("The SQL service sent an invalid answer")
        except ReadTimeoutError:
            logger.warning("The SQL service did not answer before the deadline")
            raise QueryTimeout(f"The query took longer than {limits.seconds:g} seconds.") from None
        except HTTPError:
            logger.exception("The SQL service cannot be reached")
        finally:
            _cancellation.reset(token)
        raise EngineUnavailable

    def close(self) -> None:
        """Close the connections."""
        self._pool.clear()

    def _post(self, query: Query) -> tuple[int, bytes]:
        started = time.monotonic()
        body = encode_query(query)
        try:
            return self._send(body, query.limits, started)
        except ProtocolError as error:
            # A connection that the service closed fails at once. Then the service has not read the query.
            if time.monotonic() - started > _STALE_CONNECTION_SECONDS:
                raise
            logger.info("Sending the query to the SQL service again: %s", error)
            return self._send(body, query.limits, started)

    def _send(self, body: bytes, limits: Limits, started: float) -> tuple[int, bytes]:
        left = limits.seconds + _GRACE_SECONDS - (time.monotonic() - started)
        response = self._pool.request(
            "POST",
            self._url,
            body=body,
            headers={**self._headers, REQUEST_ID_HEADER: current_request_id()},
            timeout=urllib3.Timeout(connect=_CONNECT_SECONDS, read=left),
            retries=urllib3.Retry(
                total=None,
                connect=_CONNECT_ATTEMPTS,
                # Do not repeat a query that the service has read: the query may have crashed it.
                read=False,
                redirect=False,
                status=False,
                other=False,
                backoff_factor=0.1,
            ),
            preload_content=False,
        )
        try:
            data = _read_at_most(response, limits.max_bytes + _FRAMING_BYTES)
        except BaseException:
            response.close()
            raise
        response.release_conn()
        return response.status, data


def _read_at_most(response: urllib3.BaseHTTPResponse, max_bytes: int) -> bytes:
    data = response.read(max_bytes)
    if response.read(1):
        raise InvalidMessage(f"the result is larger than {max_bytes} bytes")
    return data
