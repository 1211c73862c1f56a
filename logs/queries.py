"""Run one SQL query over a tenant's log, with its parameters and audit row. Contract: "SQL over the log"."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from django.conf import settings

from logs.audit import QueryAudit, Reader
from logs.cancelling import WATCH
from logs.kept_results import KeptResult
from logs.quoting import quote_value
from logs.sources import log_source
from logs.sql.engines.choosing import engine_from
from logs.sql.engines.local import LocalEngine
from logs.sql.engines.remote import RemoteEngine
from logs.sql.protocol import Cancellation, EngineUnavailable
from logs.sql.results import json_rows
from tenantadmin.lib.core.errors import ApiError, BadRequest, InternalError, ServiceBusy
from tenantadmin.lib.core.metrics import count_query
from tenantadmin.lib.core.serving import Disconnection
from tenantadmin.lib.objectstore import ObjectNotFound

if TYPE_CHECKING:
    from logs.sql.protocol import Engine, Limits, LogSource, QueryResult
    from tenantadmin.lib.objectstore import ObjectStore

_PARAMETER: Final = r"\{\{\s*([A-Za-z]\w{0,39})\s*\}\}"

_PARAMETERS: Final = re.compile(_PARAMETER, re.ASCII)

#: The parts of a statement, as DuckDB's lexer cuts it. An unclosed quote or comment lasts to the end.
_PARTS: Final = re.compile(
    rf"""
    (?P<comment> --[^\n\r]* )
    | (?P<block> /\* )
    | (?P<escaped> [eE]'(?:[^'\\]|''|\\.)*(?:'|\Z) )
    | (?P<text> '(?:[^']|'')*(?:'|\Z) )
    | (?P<name> "(?:[^"]|"")*(?:"|\Z) )
    | (?P<dollars> \$(?P<tag>(?:[^\W\d]\w*)?)\$.*?(?:\$(?P=tag)\$|\Z) )
    | (?P<word> [^\W\d][\w$]* )
    | (?P<positional> \$[0-9]+ )
    | (?P<parameter> (?a:{_PARAMETER}) )
    | .
    """,
    re.VERBOSE | re.DOTALL,
)


class ValueMissing(BadRequest):
    """A parameter of the statement has no value."""

    def __init__(self, names: list[str]) -> None:
        super().__init__(f"Give a value for {', '.join(names)}.")


class ParameterMisplaced(BadRequest):
    """A parameter stands where its value could become SQL."""

    def __init__(self, place: str) -> None:
        super().__init__(
            f"{{{{name}}}} cannot stand in {place}. Write it where a value belongs, without quotes."
        )


def parameters_of(statement: str) -> list[str]:
    """Return the names of a statement's parameters, each once, in order. Comments have none."""
    return list(
        dict.fromkeys(
            name
            for kind, text in parts_of(statement)
            if kind != "comment"
            for name in _PARAMETERS.findall(text)
        )
    )


def fill_parameters(statement: str, values: Mapping[str, str]) -> str:
    """Return a statement with its parameters replaced by their values, as SQL text.

    A value is always text, never SQL: a literal, or a piece of the literal in which the parameter stands.
    DuckDB converts it where a number or a day is needed.

    Raises:
        ValueMissing: a parameter has no value.
        ParameterMisplaced: a parameter stands in a quoted name, or in a literal that is not in plain quotes.
    """
    if missing := [name for name in parameters_of(statement) if not values.get(name)]:
        raise ValueMissing(missing)
    has_escapes = False
    filled = []
    for kind, part in parts_of(statement):
        has_escapes = has_escapes or kind == "escaped"
        if kind == "parameter":
            part = _PARAMETERS.sub(lambda match: quote_value(values[match[1]]), part)
        elif kind == "text" and _PARAMETERS.search(part):
            # A literal on the next line continues one with escapes, and has escapes too.
            if has_escapes:
                raise ParameterMisplaced("text after E'…'")
            part = _PARAMETERS.sub(lambda match: _piece(values[match[1]]), part)
        elif kind in _NO_PLACE and _PARAMETERS.search(part):
            raise ParameterMisplaced(_NO_PLACE[kind])
        filled.append(part)
    return "".join(filled)


_NO_PLACE: Final = {"escaped": "E'…'", "name": "a quoted name", "dollars": "$$…$$"}


def _piece(value: str) -> str:
    """Return a value as a piece of a literal in single quotes."""
    if "\0" in value:
        raise ParameterMisplaced("quotes when its value has the character NUL")
    return value.replace("'", "''")


def parts_of(statement: str) -> Iterator[tuple[str, str]]:
    """Yield the kinds and texts of the parts of a statement. Joined, they are the statement.

    The kinds are ``comment``, ``escaped`` (E'…'), ``text``, ``name`` (in quotes), ``dollars``, ``word``,
    ``positional`` ($1), ``parameter``, and none for any other character.
    """
    at = 0
    while match := _PARTS.match(statement, at):
        kind, end = match.lastgroup or "", match.end()
        if kind == "block":
            kind, end = "comment", _end_of_comment(statement, end)
        yield kind, statement[at:end]
        at = end


def _end_of_comment(statement: str, at: int) -> int:
    """Return where a comment ends whose ``/*`` ends at ``at``. Comments in it have ends of their own."""
    depth = 1
    for match in re.compile(r"/\*|\*/").finditer(statement, at):
        depth += 1 if match[0] == "/*" else -1
        if not depth:
            return match.end()
    return len(statement)


#: How often a query is tried while its days are being built again.
_ATTEMPTS: Final = 2

_engine_lock = threading.Lock()

_engine: Engine | None = None


def run_query(
    store: ObjectStore,
    *,
    tenant: UUID,
    statement: str,
    reader: Reader,
    source: LogSource | None = None,
    limits: Limits | None = None,
    disconnection: Disconnection | None = None,
    by_service: bool = False,
) -> QueryResult:
    """Run ``statement`` over the tenant's log, or return its kept result. Record in the audit how it ended.

    If a file is gone because its day was built again, the query reads the new files.

    Args:
        source: the files to read, for which no result is kept; default: the current partitions.
        limits: default: the settings.
        disconnection: ends the query when the caller is gone.
        by_service: the service wrote the statement, for figures that the reader asked for.

    Raises:
        ApiError: the statement was refused, failed or was cancelled (400), the engine failed (500), or days
            were built again in both attempts (503).
    """
    audit = QueryAudit(reader, tenant=tenant, statement=statement, by_service=by_service)
    started = time.monotonic()
    outcome, message = InternalError.code, InternalError.message
    result: QueryResult | None = None
    limits = limits or query_limits()
    cancellation = Cancellation()
    disconnection = disconnection or Disconnection()
    try:
        with disconnection.calling(cancellation.cancel), WATCH.watching(audit, cancellation):
            if source is None:
                result = _query_current_files(
                    store,
                    log_source(store, tenant=tenant),
                    tenant=tenant,
                    statement=statement,
                    limits=limits,
                    cancellation=cancellation,
                )
            else:
                result = get_engine().execute(
                    source=source, statement=statement, limits=limits, cancellation=cancellation
                )
    except ApiError as error:
        outcome, message = error.code, error.text
        raise
    else:
        outcome, message = "ok", ""
    finally:
        seconds = time.monotonic() - started
        count_query(outcome=outcome, seconds=seconds)
        audit.end(outcome=outcome, seconds=seconds, message=message, result=result)
    # Pages show the same as the audit.
    return replace(result, elapsed_ms=round(seconds * 1000))


def describe_query(
    store: ObjectStore, *, tenant: UUID, statement: str, disconnection: Disconnection
) -> QueryResult:
    """Check a statement without ``;``, and return its columns without rows: no data, so no audit.

    Raises:
        ApiError: as `run_query`. A message may hold values of the log, so nobody may see it.
    """
    cancellation = Cancellation()
    with disconnection.calling(cancellation.cancel):
        return get_engine().execute(
            source=log_source(store, tenant=tenant),
            statement=f"SELECT * FROM (\n{statement}\n) LIMIT 0",  # noqa: S608  # the guard checks it
            limits=query_limits(),
            cancellation=cancellation,
        )


def _query_current_files(
    store: ObjectStore,
    source: LogSource,
    *,
    tenant: UUID,
    statement: str,
    limits: Limits,
    cancellation: Cancellation,
) -> QueryResult:
    """Return the kept result or execute the query. If a build replaces the files, query the new ones."""
    kept = KeptResult(tenant=tenant, statement=statement, limits=limits)
    for _ in range(_ATTEMPTS):
        result = kept.find(source)
        if result is not None:
            return result
        started = time.monotonic()
        try:
            result = get_engine().execute(
                source=source, statement=statement, limits=limits, cancellation=cancellation
            )
        except (EngineUnavailable, ObjectNotFound):
            before, source = source, log_source(store, tenant=tenant)
            if source.keys == before.keys:
                raise
        else:
            kept.keep(source, result, seconds=time.monotonic() - started)
            return result
    raise ServiceBusy("Days of the log are being built again. Try again in a moment.")


def query_rows(store: ObjectStore, *, tenant: UUID, statement: str, reader: Reader) -> list[dict[str, Any]]:
    """Return the rows of a statement of the service as the API shows them, by column name.

    Raises:
        ApiError: the query failed.
    """
    return rows_of(run_query(store, tenant=tenant, statement=statement, reader=reader, by_service=True))


def rows_of(result: QueryResult) -> list[dict[str, Any]]:
    """Return the rows of a result as the API shows them, by column name."""
    rows: list[dict[str, Any]] = json.loads(b"[" + b"".join(json_rows(result)) + b"]")
    return rows


def get_engine() -> Engine:
    """Return the engine of this process, made from the settings on the first call.

    The engine starts its first query process with its first query.
    """
    global _engine  # noqa: PLW0603 - one pool of processes, or of connections, per service process
    with _engine_lock:
        if _engine is None:
            options = settings.SQL_OPTIONS
            if options.service_url:
                _engine = RemoteEngine(url=options.service_url, secret=options.service_secret)
            else:
                _engine = engine_from(options, LocalEngine.from_options(options))
        return _engine


def query_limits() -> Limits:
    """Return the limits of one query from the settings. Contract: Limits."""
    limits: Limits = settings.SQL_OPTIONS.limits
    return limits


def document_limits() -> Limits:
    """Return the limits of a query that the service runs to make or verify a document."""
    return replace(query_limits(), seconds=60.0, max_rows=1_000_000, max_bytes=256 << 20)
