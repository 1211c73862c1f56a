"""The program of a query process: restrict itself, wait for a query, run it, wait for the tenant's next one.

`logs.sql.forkserver` forks these processes. Contract: "SQL over the log". The order of the steps matters:
docs/decisions/0007-sql-guard-and-engine.md explains it.
"""

from __future__ import annotations

import errno
import json
import secrets
import signal
import sys
import tempfile
import traceback
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import _duckdb as duckdb
import pyarrow as pa

from logs import columns
from logs.quoting import quote_name, quote_text, quote_texts
from logs.sql import guard, pruning, sandbox, wire
from logs.sql.collecting import ResultError, collect, serialize
from logs.sql.engines.translation import answer_translation
from logs.sql.refusals import Refusal, add_hint, character_offset, clean_message, rank_candidates
from logs.sql.view import (
    EMPTY_VIEW,
    FAST_VIEW,
    MAKE_TIME_VIEW,
    LogView,
    needed_files,
    set_files,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Seconds after the deadline at which the kernel ends the process, in case the service did not.
GRACE_SECONDS: Final = 1.0

#: Address space besides the query's memory: stacks, the serialized result, and a heap for each thread.
_EXTRA_ADDRESS_SPACE: Final = 384 << 20
_HEAP_BYTES: Final = 64 << 20

#: Enough to read any parse tree that DuckDB's parser accepts.
_RECURSION_LIMIT: Final = 20_000

#: Processor seconds that a process may use before its query starts.
_STARTUP_SECONDS: Final = 2

_OPEN_FILES: Final = 1024
_BATCH_ROWS: Final = 2048


class _EngineError(Exception):
    """DuckDB failed, and Arrow or the Python binding raised another exception with DuckDB's message."""


def connect() -> Any:
    """Open DuckDB with one thread, because a process that forks must not have other threads."""
    connection = duckdb.connect(
        ":memory:",
        config={
            "threads": 1,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "allow_community_extensions": False,
            "allow_unsigned_extensions": False,
            "allow_persistent_secrets": False,
            "python_enable_replacements": False,
            "temp_directory": "",
            "errors_as_json": True,
            "arrow_lossless_conversion": True,
        },
    )
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute("SET enable_progress_bar = false")
    # The footers of the tenant's files stay for its next query. A build never changes: its name is new.
    connection.execute("SET parquet_metadata_cache = true")
    for name in sorted(guard.IMPLICIT_CALLS):
        # The guard cannot tell whether such a name is a column in scope. If DuckDB takes it for a call,
        # this macro hides its own function.
        message = f'There is no column "{name}" here, and the session may not be read.'
        connection.execute(f"CREATE MACRO {quote_name(name)}() AS error({quote_text(message)})")
    with tempfile.TemporaryDirectory() as folder:
        # DuckDB needs a file to make a view. Each query sets its own files later.
        path = f"{folder}/{columns.DAY}=0000-00-00/empty.parquet"
        Path(path).parent.mkdir()
        connection.execute(EMPTY_VIEW)
        no_rows = f"SELECT * EXCLUDE ({columns.DAY}) FROM proxy_logs"  # noqa: S608
        connection.execute(f"COPY ({no_rows}) TO {quote_text(path)} (FORMAT parquet)")
        set_files(connection, [path, path])
        connection.execute(FAST_VIEW)
        connection.execute(MAKE_TIME_VIEW)
    return connection


def warm_up(connection: Any) -> None:
    """Run everything that a query runs, without data: it loads code and data into memory that forks share."""
    guard.check("SELECT day, count(*) FROM proxy_logs WHERE day = 'x' GROUP BY 1", connection)
    set_files(connection, ["x"])
    # Without GROUP BY, which would clear megabytes for a hash table.
    result = connection.execute("SELECT 'x' || i AS t, i + 1 AS n FROM range(3) r(i) WHERE i > 0")
    _result_types(result)
    serialize(*collect(result.to_arrow_reader(_BATCH_ROWS), max_rows=2, max_bytes=1000)[:2])


def serve(descriptor: int, connection: Any, limits: wire.ProcessLimits) -> None:
    """Answer requests for one folder until the service closes the socket or kills this process.

    The first request decides on the folder; a request for another folder ends the process. Only a result, a
    refusal or an ordinary error lets it continue.
    """
    _restrict_process(connection, limits)
    session: _Session | None = None
    while (request := _read_request(descriptor)) is not None:
        # The default action of SIGALRM ends the process, whatever DuckDB is doing.
        signal.setitimer(signal.ITIMER_REAL, request.seconds + GRACE_SECONDS)
        if session is None:
            session = _Session(descriptor, connection, limits, folder=request.folder)
        elif request.folder != session.folder:
            return
        document, body = session.answer(request)
        is_reusable = session.is_reusable and document["kind"] in wire.ORDINARY_KINDS
        wire.write_all(descriptor, wire.encode({**document, "isReusable": is_reusable}, body=body))
        wire.write_all(descriptor, body)
        if not is_reusable:
            return
        del body
        # Frees the last result, which may not have been read to its end.
        connection.execute("SELECT 1").fetchall()
        signal.setitimer(signal.ITIMER_REAL, limits.idle_seconds + GRACE_SECONDS)


def _read_request(descriptor: int) -> wire.Request | None:
    """Return the next request, or None if the service has closed the socket."""
    try:
        return wire.Request.from_json(wire.read_head(descriptor))
    except wire.ConnectionEnded:
        return None


class _Session:
    """The requests for the files below one folder."""

    def __init__(self, descriptor: int, connection: Any, limits: wire.ProcessLimits, *, folder: str) -> None:
        self.folder = folder
        #: Only landlock lets the engine read a whole folder, in which later requests may name other files.
        self.is_reusable = False
        self._is_locked = False
        self._descriptor = descriptor
        self._connection = connection
        self._limits = limits
        self._view = LogView(connection)

    def answer(self, request: wire.Request) -> tuple[dict[str, Any], memoryview]:
        """Return the JSON and the body of the answer to a request."""
        try:
            return self._check_and_run(request)
        except Refusal as refusal:
            document = {"kind": "rejected", "message": refusal.message, "position": refusal.position}
        except ResultError as failure:
            document = {"kind": "failed", "message": str(failure), "position": None}
        except MemoryError:
            document = {"kind": "memory"}
        except (duckdb.Error, _EngineError) as error:
            document = _describe_error(str(error), request)
        except Exception:  # noqa: BLE001 - a fault of this program; the service logs it
            document = {"kind": "fault", "message": traceback.format_exc()}
        return document, memoryview(b"")

    def _check_and_run(self, request: wire.Request) -> tuple[dict[str, Any], memoryview]:
        if not self._is_locked:
            has_landlock = sandbox.restrict_files(filter(None, [self.folder]))
            _lock_engine(self._connection, request, self._limits, has_landlock=has_landlock)
            self._is_locked = True
            self.is_reusable = has_landlock and bool(request.files) and self._limits.idle_seconds > 0
        checked = guard.check(request.statement, self._connection)
        days = pruning.days_read(checked.tree, sorted(set(request.days)))
        valid_for = days if checked.is_repeatable else None
        if request.translate:
            run = partial(self._run_over_nothing, request)
            document, body = answer_translation(checked.tree, request.statement, run)
            return {**document, "reads": days, "days": valid_for}, body
        files = needed_files(days, request.files, request.days)
        head = {"kind": "checked", "readsLog": checked.reads_log, "namesDay": checked.names_day}
        wire.write_all(self._descriptor, wire.encode({**head, "files": files} if request.wait else head))
        if request.wait:
            wire.read_head(self._descriptor)
        if checked.reads_log:
            paths = [f"{self.folder}/{file}" for file in files]
            document, body = _run_over_files(self._connection, self._view, request, paths)
        else:
            document, body = _execute(self._connection, request)
        return {**document, "days": valid_for}, body

    def _run_over_nothing(self, request: wire.Request) -> tuple[dict[str, Any], memoryview]:
        self._view.make([])
        return _execute(self._connection, replace(request, max_rows=0))


# Restrictions ------------------------------------------------------------------------------------


def _restrict_process(connection: Any, limits: wire.ProcessLimits) -> None:
    """Apply all restrictions that do not depend on the query. `_lock_engine` restricts the access to files.

    DuckDB has not started its threads yet. The threads that `_lock_engine` starts inherit the restrictions.
    """
    sys.setrecursionlimit(_RECURSION_LIMIT)
    sandbox.prefer_for_oom_kill()
    sandbox.limit_files(open_files=_OPEN_FILES)
    sandbox.forbid_new_privileges()
    sandbox.drop_capabilities()
    connection.execute(f"SET memory_limit = '{limits.memory_bytes}B'")
    # All forks have the same state of the engine's random numbers.
    connection.execute(f"SELECT setseed({secrets.SystemRandom().uniform(-1, 1)})")
    seconds = (limits.seconds + GRACE_SECONDS) * limits.threads + limits.earlier_seconds
    sandbox.limit_processor_time(seconds=int(seconds) + _STARTUP_SECONDS)
    extra = _EXTRA_ADDRESS_SPACE + _HEAP_BYTES * limits.threads
    sandbox.limit_memory(extra_bytes=limits.memory_bytes + extra)
    program = sandbox.compile_filter()
    if program is not None:
        sandbox.refuse_system_calls(program)


def _lock_engine(
    connection: Any, request: wire.Request, limits: wire.ProcessLimits, *, has_landlock: bool
) -> None:
    """Start DuckDB's threads and lock its settings. Call this after the sandbox, before parsing anything."""
    if has_landlock and request.files:
        # Landlock forbids writing, so a folder is safe. One folder costs DuckDB less than hundreds of paths.
        allowed = f"SET allowed_directories = [{quote_text(request.folder)}]"
    else:
        allowed = f"SET allowed_paths = {quote_texts(request.paths)}"
    connection.execute(
        f"SET threads = {limits.threads}; {allowed};"
        " SET enable_external_access = false; SET lock_configuration = true"
    )


def _run_over_files(
    connection: Any, view: LogView, request: wire.Request, files: Sequence[str]
) -> tuple[dict[str, Any], memoryview]:
    """Run the checked statement over ``files``. If the fast view may have failed it, use the tolerant one."""
    if request.has_positions:
        view.make_positioned(files)
        return _execute(connection, request)
    try:
        view.make(files)
        return _execute(connection, request)
    except (duckdb.Error, _EngineError) as error:
        if not files or not _may_come_from_view(error):
            raise
    view.make_tolerant(files)
    return _execute(connection, request)


def _may_come_from_view(error: Exception) -> bool:
    """Return True if the view may have caused the error, False if only the statement can have."""
    details = _details(str(error))
    # If the first file is older than a column, the column is not found. If a later one is, it is a mismatch.
    is_column_missing = (
        details.get("error_subtype") == "COLUMN_NOT_FOUND" and details.get("name") in columns.BY_NAME
    )
    return is_column_missing or "schema mismatch in glob" in str(details.get("exception_message"))


def _execute(connection: Any, request: wire.Request) -> tuple[dict[str, Any], memoryview]:
    """Execute the checked statement. Return the answer's JSON and its Arrow stream."""
    try:
        result = connection.execute(request.statement)
        types = _result_types(result)
        if len(types) > request.max_columns:
            raise ResultError(
                f"The result has {len(types)} columns; at most {request.max_columns} are allowed."
                " Name the columns that you need."
            )
        schema, batches, truncated = collect(
            result.to_arrow_reader(_BATCH_ROWS), max_rows=request.max_rows, max_bytes=request.max_bytes
        )
    except (pa.ArrowException, OSError) as error:
        raise _EngineError(str(error)) from error
    except UnicodeDecodeError as error:
        # DuckDB's message ends within a character, so the Python binding could not raise its own error.
        raise _EngineError(error.object.decode(errors="replace")) from error
    document = {
        "kind": "result",
        "columns": types,
        "rows": sum(batch.num_rows for batch in batches),
        "truncated": truncated,
    }
    return document, serialize(schema, batches)


def _result_types(result: Any) -> list[list[str]]:
    return [[name, str(engine_type)] for name, engine_type, *_ in result.description]


# Errors ------------------------------------------------------------------------------------------


#: Some versions of Python, such as Debian's 3.11.2, drop a message that they cannot decode.
_MESSAGE_LOST: Final = (
    "The engine's message is lost because it ends within a character. Look for text beyond ASCII in what the"
    " query converts, parses or formats."
)


def _describe_error(text: str, request: wire.Request) -> dict[str, Any]:
    """Convert DuckDB's error, ``<Title> Error: <JSON or text>``, to an answer.

    The answer does not reveal paths, settings or DuckDB's internals.
    """
    title, _, rest = text.partition(" Error: ")
    details = _details(rest or text)
    message = str(details.get("exception_message") or _MESSAGE_LOST)
    if title == "Out of Memory" or "std::bad_alloc" in message:
        return {"kind": "memory"}
    if title in {"INTERNAL", "FATAL"}:
        return {"kind": "internal"}
    if title == "IO" and str(details.get("errno")) == str(errno.EMFILE):
        message = "The query opens too many files at once. Read proxy_logs fewer times in it."
        return {"kind": "failed", "message": message, "position": None}
    if title in {"IO", "HTTP"} or (request.folder and request.folder in message):
        # A file of the log cannot be read. A statement cannot name files.
        return {"kind": "fault", "message": text}
    if "Unsupported Arrow type" in message:
        message += ". Cast the column to VARCHAR."
    if "Recursion level in ArrowSchema" in message:
        message = "The result nests too deeply. Cast the column to JSON or VARCHAR."
    offset = str(details.get("position"))
    return {
        "kind": "failed",
        "message": add_hint(rank_candidates(clean_message(message), details)),
        "position": character_offset(request.statement.encode(), int(offset) if offset.isdigit() else None),
    }


def _details(text: str) -> dict[str, Any]:
    """Return the JSON after the exception's title. Without JSON, return the text as the message."""
    start = text.find("{")
    if start >= 0:
        try:
            details = json.loads(text[start:])
        except ValueError:
            details = None
        if isinstance(details, dict):
            return details
    return {"exception_message": text}
