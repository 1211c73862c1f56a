"""One query in one process: prepared ahead, used once, shut in, then gone.

Runs in a process forked by `logs.sql.forkserver`. Contract: "SQL over the log"; the order of the
steps matters and is given in docs/decisions/0007-sql-guard-and-engine.md.
"""

from __future__ import annotations

import errno
import json
import select
import signal
import sys
import tempfile
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import _duckdb as duckdb
import pyarrow as pa

# Loaded by the first list otherwise, when no file can be read any more.
import pyarrow.compute

from logs import columns
from logs.sql import guard, sandbox, wire
from logs.sql.layout import as_integers, elements, map_as_list
from logs.sql.messages import character_offset, clean_message
from logs.sql.names import quote_name, quote_text
from logs.sql.view import EMPTY_VIEW, USUAL_VIEW, files_read, make_careful_view, make_view, name_files

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

#: Seconds after the service's own deadline at which the kernel ends a process that nobody ended.
GRACE_SECONDS: Final = 1.0

#: Address space beyond the query's memory: thread stacks, allocator reserves, the result in transit.
_SLACK_BYTES: Final = 384 << 20

#: Frames for reading a parse tree: what the parser lets nest stays below it.
_RECURSION_LIMIT: Final = 20_000

#: Processor seconds that a process may use before its query begins.
_PREPARING_SECONDS: Final = 2

#: Seconds without a request after which a process rehearses.
_CALM_SECONDS: Final = 0.05

_OPEN_FILES: Final = 1024
_BATCH_ROWS: Final = 2048

#: A value's weight on top of its bytes, so that a result of many tiny values is bounded too.
_VALUE_BYTES: Final = 8


class _Failed(Exception):
    """The query cannot be answered, for a reason that its author may read."""


class _EngineFailed(Exception):
    """The engine gave up, and its message is all that Arrow, or its own binding, has passed on of that."""


def connect() -> Any:
    """Open the engine with one thread: a process that is about to fork must have no other."""
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
    for name in sorted(guard.IMPLICIT_CALLS):
        # Found before the engine's own, should the guard have taken the name for a column's.
        message = f'There is no column "{name}" here, and the session may not be read.'
        connection.execute(f"CREATE MACRO {quote_name(name)}() AS error({quote_text(message)})")
    with tempfile.TemporaryDirectory() as folder:
        # The engine wants to see a file when it makes a view. Each query names its own later.
        path = f"{folder}/{columns.DAY}=0000-00-00/empty.parquet"
        Path(path).parent.mkdir()
        connection.execute(EMPTY_VIEW)
        nothing = f"SELECT * EXCLUDE ({columns.DAY}) FROM proxy_logs"  # noqa: S608
        connection.execute(f"COPY ({nothing}) TO {quote_text(path)} (FORMAT parquet)")
        name_files(connection, [path, path])
        connection.execute(USUAL_VIEW)
    return connection


def rehearse(connection: Any) -> Iterator[None]:
    """Go through what every query goes through, in steps, over nothing.

    Before the fork, so that a process finds it in memory; after it, so that the pages which a query writes
    to are the process's own before anybody waits for it.
    """
    guard.check("SELECT day, count(*) FROM proxy_logs WHERE day = 'x' GROUP BY 1", connection)
    name_files(connection, ["x"])
    yield
    # Nothing grouped: that would clear megabytes for a hash table.
    result = connection.execute("SELECT 'x' || i AS t, i + 1 AS n FROM range(3) r(i) WHERE i > 0")
    yield
    _result_types(result)
    _serialize(*_collect(result.to_arrow_reader(_BATCH_ROWS), max_rows=2, max_bytes=1000)[:2])


def serve(descriptor: int, connection: Any, preparation: wire.Preparation) -> None:
    """Wait for the one request, answer it, return. The service may kill this process at any moment."""
    _prepare(connection, preparation)
    _rehearse_in_calm(descriptor, connection)
    try:
        request = wire.Request.from_json(wire.read_head(descriptor))
    except wire.ConnectionEnded:
        return
    # The default action of this signal ends the process, whatever the engine is doing.
    signal.setitimer(signal.ITIMER_REAL, request.seconds + GRACE_SECONDS)
    body = memoryview(b"")
    try:
        guarded = sandbox.restrict_files(filter(None, [request.folder]))
        _lock(connection, request, preparation, guarded=guarded)
        checked = guard.check(request.statement, connection)
        files = files_read(checked.tree, request.files, request.days)
        hint = {"kind": "checked", "readsLog": checked.reads_log, "namesDay": checked.names_day}
        wire.write_all(descriptor, wire.encode({**hint, "files": files} if request.wait else hint))
        if request.wait:
            wire.read_head(descriptor)
        document, body = _answer(connection, request, [f"{request.folder}/{file}" for file in files])
    except guard.Refused as refusal:
        document = {"kind": "rejected", "message": refusal.message, "position": refusal.position}
    except _Failed as failure:
        document = {"kind": "failed", "message": str(failure), "position": None}
    except MemoryError:
        document = {"kind": "memory"}
    except (duckdb.Error, _EngineFailed) as error:
        document = _describe(str(error), request)
    except Exception:  # noqa: BLE001 - a fault of ours, which the service logs
        document = {"kind": "fault", "message": traceback.format_exc()}
    wire.write_all(descriptor, wire.encode(document, body=body))
    wire.write_all(descriptor, body)


# Walls -------------------------------------------------------------------------------------------


def _prepare(connection: Any, preparation: wire.Preparation) -> None:
    """Give up everything that no query needs, whoever asks it: all but the tenant's files.

    The engine has no thread of its own yet. Those that `_lock` makes inherit every wall.
    """
    sys.setrecursionlimit(_RECURSION_LIMIT)
    sandbox.die_first()
    sandbox.limit_files(open_files=_OPEN_FILES)
    sandbox.forbid_new_privileges()
    connection.execute(f"SET memory_limit = '{preparation.memory_bytes}B'")
    seconds = (preparation.seconds + GRACE_SECONDS) * preparation.threads
    sandbox.limit_processor_time(seconds=int(seconds) + _PREPARING_SECONDS)
    sandbox.limit_memory(extra_bytes=preparation.memory_bytes + _SLACK_BYTES)
    program = sandbox.compile_filter()
    if program is not None:
        sandbox.refuse_system_calls(program)


def _rehearse_in_calm(descriptor: int, connection: Any) -> None:
    """Rehearse where nobody asks for a while. It costs as much as a short query, so it could delay others."""
    if not _is_asked(descriptor, within=_CALM_SECONDS):
        for _ in rehearse(connection):
            if _is_asked(descriptor, within=0):
                break


def _is_asked(descriptor: int, *, within: float) -> bool:
    """Whether the request is there, or the service gone, in so many seconds."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(within * 1000))


def _lock(connection: Any, request: wire.Request, preparation: wire.Preparation, *, guarded: bool) -> None:
    """Make the engine's threads and lock it, after the walls. No word of the statement is read yet."""
    if guarded and request.files:
        # The kernel lets nothing be written. One folder costs the engine less than hundreds of paths.
        allowed = f"SET allowed_directories = [{quote_text(request.folder)}]"
    else:
        allowed = f"SET allowed_paths = [{', '.join(quote_text(path) for path in request.paths)}]"
    connection.execute(
        f"SET threads = {preparation.threads}; {allowed};"
        " SET enable_external_access = false; SET lock_configuration = true"
    )


def _answer(
    connection: Any, request: wire.Request, files: Sequence[str]
) -> tuple[dict[str, Any], memoryview]:
    """Run the checked statement over ``files``: where their usual view fails it, by the careful one."""
    try:
        make_view(connection, files, request.days)
        return _run(connection, request)
    except (duckdb.Error, _EngineFailed) as error:
        if not files or not _is_of_view(error):
            raise
    make_careful_view(connection, files)
    return _run(connection, request)


def _is_of_view(error: Exception) -> bool:
    """Whether the view may be at fault, and not the statement alone."""
    # The pinned engine plans ``min(day)`` wrongly where a condition leaves the first of its files alone.
    if not str(error) or str(error).startswith("INTERNAL Error: "):
        return True
    details = _details(str(error))
    # What the first of the files lacks cannot be named, what a later one lacks cannot be read.
    lacks_first = (
        details.get("error_subtype") == "COLUMN_NOT_FOUND" and details.get("name") in columns.BY_NAME
    )
    return lacks_first or "schema mismatch in glob" in str(details.get("exception_message"))


def _run(connection: Any, request: wire.Request) -> tuple[dict[str, Any], memoryview]:
    """Execute the checked statement and return the answer's JSON and its Arrow stream."""
    try:
        result = connection.execute(request.statement)
        described = _result_types(result)
        if len(described) > request.max_columns:
            raise _Failed(
                f"The result has {len(described)} columns; at most {request.max_columns} are allowed."
                " Name the columns that you need."
            )
        schema, batches, truncated = _collect(
            result.to_arrow_reader(_BATCH_ROWS), max_rows=request.max_rows, max_bytes=request.max_bytes
        )
    except (pa.ArrowException, OSError) as error:
        raise _EngineFailed(str(error)) from error
    except UnicodeDecodeError as error:
        # The binding could not make its own error: the message, which is whole here, cuts a character.
        raise _EngineFailed(error.object.decode(errors="replace")) from error
    document = {
        "kind": "result",
        "columns": described,
        "rows": sum(batch.num_rows for batch in batches),
        "truncated": truncated,
    }
    return document, _serialize(schema, batches)


def _result_types(result: Any) -> list[list[str]]:
    return [[name, str(engine_type)] for name, engine_type, *_ in result.description]


def _collect(
    reader: pa.RecordBatchReader, *, max_rows: int, max_bytes: int
) -> tuple[pa.Schema, list[pa.RecordBatch], bool]:
    """Read batches up to the caps; the last part tells whether more was there.

    The reader streams: nothing behind the caps is computed, beyond what the engine had begun.
    """
    kept: list[pa.RecordBatch] = []
    rows = weight = 0
    for batch in reader:
        part = batch.slice(0, max_rows - rows)
        truncated = part.num_rows < batch.num_rows
        own = _weight(part)
        if weight + own > max_bytes:
            part = part.slice(0, _rows_within(part, max_bytes - weight))
            truncated = True
        _check_text(part)
        kept.append(part)
        rows += part.num_rows
        weight += own
        if truncated:
            return reader.schema, kept, True
    return reader.schema, kept, False


def _check_text(batch: pa.RecordBatch) -> None:
    """Refuse text that is not UTF-8. Whatever else is wrong is a fault of ours, which the service finds."""
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        try:
            as_integers(column).validate(full=True)
        except pa.ArrowInvalid as error:
            if "UTF8" in str(error):
                raise _Failed(
                    f'The column "{name}" holds text that is not UTF-8: \\C in a regular expression and %c in'
                    " printf make single bytes. Use . and chr(…) in their place, or encode(…) for a BLOB."
                ) from None


def _weight(batch: pa.RecordBatch) -> int:
    """Return what a batch weighs: its bytes, 8 a value, and each name and ENUM text as often as written."""
    names = batch.num_rows * sum(len(name.encode()) for name in batch.schema.names)
    return int(batch.nbytes) + names + sum(_surplus(column) for column in batch.columns)


def _surplus(array: pa.Array[Any]) -> int:
    """Return what an array weighs beyond its bytes, with all that lists, structs and the like hold."""
    if isinstance(array, pa.ExtensionArray):
        return _surplus(array.storage)
    if isinstance(array, pa.UnionArray):
        return _surplus_of_fields(array)
    weight = _VALUE_BYTES * len(array)
    if isinstance(array, pa.MapArray):
        pairs = elements(map_as_list(array))
        return weight + _VALUE_BYTES * len(pairs) + _surplus_of_fields(pairs)
    if isinstance(array, pa.ListArray | pa.FixedSizeListArray):
        return weight + _surplus(elements(array))
    if isinstance(array, pa.StructArray):
        names = sum(len(field.name.encode()) for field in array.type)
        return weight + names * (len(array) - array.null_count) + _surplus_of_fields(array)
    if isinstance(array, pa.DictionaryArray):
        texts: Any = array.dictionary
        lengths = pyarrow.compute.binary_length(texts)
        return weight + (pyarrow.compute.sum(lengths.take(array.indices)).as_py() or 0)
    return weight


def _surplus_of_fields(array: Any) -> int:
    return sum(_surplus(array.field(index)) for index in range(array.type.num_fields))


def _rows_within(batch: pa.RecordBatch, budget: int) -> int:
    """Return how many first rows fit the budget, by bisection."""
    low, high = 0, batch.num_rows
    while low < high:
        middle = (low + high + 1) // 2
        if _weight(batch.slice(0, middle)) <= budget:
            low = middle
        else:
            high = middle - 1
    return low


def _serialize(schema: pa.Schema, batches: list[pa.RecordBatch]) -> memoryview:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return memoryview(sink.getvalue())


# Errors ------------------------------------------------------------------------------------------


#: Python 3.11.2, which is Debian's, drops a message that it cannot decode.
_LOST: Final = (
    "The engine's message is lost, for it cuts a character. Look for text beyond ASCII in what the query"
    " converts, parses or formats."
)


def _describe(text: str, request: wire.Request) -> dict[str, Any]:
    """Turn the engine's error, ``<Title> Error: <JSON or text>``, into an answer.

    What it says of paths, settings and its own internals stays here.
    """
    title, _, rest = text.partition(" Error: ")
    details = _details(rest or text)
    message = str(details.get("exception_message") or _LOST)
    if title == "Out of Memory" or "std::bad_alloc" in message:
        return {"kind": "memory"}
    if title in {"INTERNAL", "FATAL"}:
        return {"kind": "crashed"}
    if title == "IO" and str(details.get("errno")) == str(errno.EMFILE):
        message = "The query opens too many files at once. Read proxy_logs fewer times in it."
        return {"kind": "failed", "message": message, "position": None}
    if title in {"IO", "HTTP"} or (request.folder and request.folder in message):
        # Nobody but the view names a file of the log.
        return {"kind": "fault", "message": text}
    if "Unsupported Arrow type" in message:
        message += ". Cast the column to VARCHAR."
    if "Recursion level in ArrowSchema" in message:
        message = "The result nests too deeply. Cast the column to JSON or VARCHAR."
    offset = str(details.get("position"))
    return {
        "kind": "failed",
        "message": clean_message(message),
        "position": character_offset(request.statement.encode(), int(offset) if offset.isdigit() else None),
    }


def _details(text: str) -> dict[str, Any]:
    """Return the JSON that follows the exception's title, or the text as its message."""
    start = text.find("{")
    if start >= 0:
        try:
            details = json.loads(text[start:])
        except ValueError:
            details = None
        if isinstance(details, dict):
            return details
    return {"exception_message": text}
