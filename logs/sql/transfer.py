"""What a service process and an SQL service tell each other over HTTP: a query as JSON, its result as an
Arrow stream, a failure as JSON. Pure, and imported on both sides.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

import orjson
import pyarrow as pa

from logs.sql.errors import QueryFailed, QueryRejected, QueryTimeout
from logs.sql.protocol import Limits, LogSource, QueryResult, ResultColumn

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tenantadmin.core.errors import ApiError

PATH: Final = "/execute"
RESULT_TYPE: Final = "application/vnd.apache.arrow.stream"

#: How the description of a result lies in the metadata of the stream's schema.
_DESCRIPTION: Final = b"tenantadmin.result"

#: The failures that a query's author is told of. Whatever else happens is a fault of ours.
_FAILURES: Final[Mapping[str, type[ApiError]]] = {
    failure.code: failure for failure in (QueryRejected, QueryFailed, QueryTimeout)
}


class BadTransfer(Exception):
    """The other side sent what it never should."""


@dataclass(frozen=True, slots=True)
class Query:
    """One query: ``files`` are pairs of a day and an object key."""

    tenant: str
    files: tuple[tuple[str, str], ...]
    statement: str
    limits: Limits

    @classmethod
    def over(cls, source: LogSource, statement: str, limits: Limits) -> Query:
        """Return the query over a source whose keys are known."""
        days = [day.day for day in source.days for _ in day.files]
        return cls(source.tenant_id, tuple(zip(days, source.keys, strict=True)), statement, limits)


def encode_query(query: Query) -> bytes:
    return orjson.dumps(asdict(query))


def decode_query(body: bytes) -> Query:
    """Raises `BadTransfer`."""
    try:
        document = orjson.loads(body)
        files = tuple((str(day), str(key)) for day, key in document["files"])
        return Query(str(document["tenant"]), files, str(document["statement"]), Limits(**document["limits"]))
    except (ValueError, KeyError, TypeError) as error:
        raise BadTransfer(f"no query: {error}") from None


def encode_result(result: QueryResult) -> bytes:
    description = {
        "columns": [[column.name, column.type] for column in result.columns],
        "truncated": result.truncated,
        "elapsed_ms": result.elapsed_ms,
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
    """Raises `BadTransfer`."""
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
            elapsed_ms=int(description["elapsed_ms"]),
        )
    except (pa.ArrowException, ValueError, KeyError, TypeError) as error:
        raise BadTransfer(f"no result: {error}") from None


def encode_failure(failure: ApiError) -> bytes:
    return orjson.dumps({"error": failure.code, "message": failure.text})


def decode_failure(body: bytes) -> ApiError:
    """Return the error to raise. Raises `BadTransfer` for one that is not the author's."""
    try:
        document: dict[str, Any] = orjson.loads(body)
        return _FAILURES[document["error"]](str(document["message"]))
    except (ValueError, KeyError, TypeError) as error:
        raise BadTransfer(f"no failure of a query: {error!r}") from None
