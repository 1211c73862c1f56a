"""The messages between a service process and a SQL service over HTTP.

A query is JSON, its result an Arrow stream, an error JSON. Both sides import this module; it imports no
Django.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pyarrow as pa

from logs.sql.errors import QueryFailed, QueryInterrupted, QueryRejected, QueryTimeout
from logs.sql.protocol import Limits, LogSource, QueryResult, ResultColumn

if TYPE_CHECKING:
    from collections.abc import Mapping

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
