"""What a statement is: whether it reads the log, and whether the catalog server may get it; its values.

PostgreSQL's lexer and ours must cut a text alike, or a statement could hide in what we take for a literal. So
what they could cut otherwise is refused.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

import psycopg
from psycopg.types import datetime, numeric
from psycopg.types.bool import BoolBinaryLoader
from psycopg.types.uuid import UUIDBinaryLoader

from logs.columns import COLUMNS
from logs.queries import parts_of
from logs.quoting import quote_name, quote_text
from logs.sql.guard import MAX_STATEMENT_BYTES
from logs.sql.view import LOG_VIEWS, fold
from logs.wire import rows
from logs.wire.messages import MAX_PARAMETERS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from psycopg.adapt import Loader


class Failure(Exception):
    """An error for the client, with its SQLSTATE. If it is fatal, the connection ends."""

    def __init__(self, code: str, text: str, *, hint: str = "", is_fatal: bool = False) -> None:
        super().__init__(text)
        self.code, self.text, self.hint, self.is_fatal = code, text, hint, is_fatal


#: The first words of statements that the catalog server may get. Its role can write nothing, but a role may
#: always change its own password and settings, and all clients share the role.
_READING: Final = frozenset(
    {"select", "with", "values", "table", "show", "explain", "declare", "fetch", "move", "close", "copy"}
    | {"begin", "start", "commit", "end", "rollback", "abort", "savepoint", "release", "set", "reset"}
    | {"prepare", "execute", "deallocate", "discard", "unlisten", "("}
)
_TWO_PHASES: Final = (["prepare", "transaction"], ["commit", "prepared"], ["rollback", "prepared"])
#: What a client may set. Memory and time of the server are not among it.
SETTINGS: Final = frozenset(
    {"application_name", "bytea_output", "client_min_messages", "datestyle", "extra_float_digits", "geqo"}
    | {"intervalstyle", "lock_timeout", "search_path", "statement_timeout", "timezone", "transaction"}
    | {"default_transaction_isolation", "default_transaction_read_only", "transaction_isolation", "time"}
    | {"transaction_read_only", "characteristics", "client_encoding", "names", "xmloption"}
    | {"idle_in_transaction_session_timeout", "default_transaction_deferrable"}
)
_UTF8: Final = frozenset({"utf8", "utf-8", "unicode", "default"})
_WRITTEN_WITH_CAPITALS: Final = {fold(column.name): column.name for column in COLUMNS}


#: Bytes of a name. PostgreSQL cuts longer ones.
MAX_NAME: Final = 63
#: How many statements are remembered with their parts, each of which may take megabytes.
_REMEMBERED: Final = 4
#: What PostgreSQL takes for space. Other space of Unicode is a part of names to it.
_SPACE: Final = " \t\n\r\f\v"


@lru_cache(maxsize=_REMEMBERED)
def _parts(statement: str) -> tuple[tuple[str, str], ...]:
    """Return the parts of a statement, which many look at: to cut 64 KiB takes a tenth of a second."""
    return tuple(parts_of(statement))


@lru_cache(maxsize=_REMEMBERED)
def _tokens(statement: str) -> tuple[tuple[str, str], ...]:
    """Return the parts of a statement without comments and space."""
    return tuple((kind, part) for kind, part in _parts(statement) if kind != "comment" and part.strip(_SPACE))


@lru_cache(maxsize=_REMEMBERED)
def split(text: str) -> tuple[str, ...]:
    """Return the statements of a text, without empty ones."""
    found, current = [], list[str]()
    for kind, part in (*_parts(text), ("", ";")):
        if part == ";" and kind == "":
            found.append("".join(current))
            current = []
        else:
            current.append(part)
    return tuple(statement for statement in found if _tokens(statement))


def words_of(statement: str) -> list[str]:
    """Return the parts of a statement in lower case, names and texts without their quotes."""
    return [part.strip("\"'").lower() for _, part in _tokens(statement)]


def reads_log(statement: str) -> bool:
    """Return True if a name in a statement is a view of the log. Texts, as catalog queries have, are none."""
    return any(
        kind in {"word", "name"} and fold(part.strip('"')) in LOG_VIEWS for kind, part in _parts(statement)
    )


def require_catalog(statement: str) -> None:
    """Refuse a statement that the catalog server must not get.

    Raises:
        Failure: with the reason.
    """
    _require_plain_parts(statement)
    words = words_of(statement)
    if not words:
        return
    if words[0] not in _READING or words[:2] in _TWO_PHASES:
        raise Failure(
            "42501", f"Here {words[0].upper()} is not allowed: the log and its catalog are only read."
        )
    if words[0] == "declare" and ("with", "hold") in pairwise(words):
        raise Failure("0A000", "WITH HOLD is for cursors over the log.")
    if words[0] == "set":
        names = [word for word in words[1:4] if word not in {"session", "local", "as"}] or [""]
        # After a dot is a setting of the client's own, of any size.
        following = words[words.index(names[0]) + 1 :] if names[0] in words else []
        if names[0] not in SETTINGS or following[:1] == ["."]:
            raise Failure("42501", f"Here {names[0]!r} cannot be set.")
        if names[0] in {"client_encoding", "names"} and words[-1] not in _UTF8:
            raise Failure("0A000", "The only encoding here is UTF8.")


def _require_plain_parts(statement: str) -> None:
    """Refuse what PostgreSQL cuts or reads otherwise."""
    before = ""
    for kind, part in _tokens(statement):
        if (before == "escaped" and kind == "text") or (kind == "" and not part.isascii()):
            raise Failure("42601", "Write E'…' as one text, and names that are not ASCII in quotes.")
        before = kind
    parts = _parts(statement)
    for (_, first), (_, second), (kind, _) in zip(parts, parts[1:], parts[2:], strict=False):
        if kind == "name" and (first.lower(), second) == ("u", "&"):
            raise Failure("42601", 'Write names without U&"…".')


@dataclass(frozen=True, slots=True)
class Action:
    """What a statement over the log does.

    Attributes:
        verb: ``SELECT``, ``COPY``, ``DECLARE``, ``FETCH``, ``MOVE``, ``CLOSE`` or ``DEALLOCATE``.
        query: the statement that reads the log.
        form: ``text``, ``csv`` or ``binary``, of a COPY and of a cursor.
        has_header: a COPY begins with the names of the columns.
        cursor: the name of the cursor or of the prepared statement.
        is_held: the cursor outlives its transaction.
        count: how many rows a FETCH or a MOVE asks for; None for all.
    """

    verb: str
    query: str = ""
    form: str = "text"
    has_header: bool = False
    cursor: bytes = b""
    is_held: bool = False
    count: int | None = None


#: Where the name is in a statement that begins with one of these.
_NAMED: Final = {
    **dict.fromkeys(("prepare", "declare", "savepoint"), 1),
    **dict.fromkeys(("fetch", "move", "close", "deallocate", "release", "discard"), -1),
}


class Use(NamedTuple):
    """What a statement makes, uses or ends: its first word and the name, which is empty for ALL. Other
    statements have neither. ``size`` is the statement's.
    """

    verb: str = ""
    name: bytes = b""
    size: int = 0


def use_of(statement: str) -> Use:
    """Return what a statement makes, uses or ends by a name."""
    tokens = _tokens(statement)
    verb = tokens[0][1].lower() if len(tokens) > 1 else ""
    if (place := _NAMED.get(verb)) is None:
        return Use(size=len(statement))
    return Use(verb, _name_of(*tokens[place]), len(statement))


def read_action(statement: str) -> Action:
    """Return what a statement does that reads the log, or names a cursor over it.

    Raises:
        Failure: it is a COPY that is not supported, or a FETCH that goes back.
    """
    words, use = words_of(statement), use_of(statement)
    match words[:1]:
        case ["copy"]:
            return _read_copy(statement)
        case ["declare"]:
            return _read_declare(statement)
        case ["close" | "deallocate"] if use.name:
            return Action(use.verb.upper(), cursor=use.name)
        case ["fetch" | "move"] if use.name:
            direction = "".join(word for word in words[1:-1] if word not in {"from", "in"})
            known = re.fullmatch(r"(?:forward)?([1-9][0-9]{0,17}|all)?|next", direction)
            if known is None:
                raise Failure("55000", f"A cursor over the log only goes forward: FETCH n FROM {words[-1]}.")
            count = None if known[1] == "all" else int(known[1] or 1)
            return Action(use.verb.upper(), cursor=use.name, count=count)
    return Action("SELECT", statement)


def _read_declare(statement: str) -> Action:
    parts = _parts(statement)
    end = next((n for n, part in enumerate(parts) if part[0] == "word" and part[1].lower() == "for"), 0)
    tokens = list(_tokens("".join(part for _, part in parts[:end])))
    options = [part.lower() for _, part in tokens[2:]]
    if "cursor" not in options:
        raise Failure("42601", "Write DECLARE name CURSOR FOR SELECT ….")
    return Action(
        "DECLARE",
        "".join(part for _, part in parts[end + 1 :]),
        form="binary" if "binary" in options else "text",
        cursor=_name_of(*tokens[1]),
        is_held=options[-2:] == ["with", "hold"],
    )


def _read_copy(statement: str) -> Action:
    depth, inside, rest = 0, "", list[str]()
    for kind, part in _parts(statement):
        depth -= kind == "" and part == ")" and not rest
        if depth > 0:
            inside += part
        elif inside and kind != "comment" and part.strip(_SPACE):
            rest.append(part.strip("\"'").lower())
        depth += kind == "" and part == "(" and not rest
    options = {*rest[3:]} - {"(", ")", ",", "with", "format", "true", "on"}
    is_known = rest[:3] == [")", "to", "stdout"] and options <= {"text", "csv", "binary", "header"}
    if words_of(statement)[1] != "(" or not is_known:
        raise Failure(
            "0A000", "Write COPY (SELECT …) TO STDOUT, with FORMAT text, csv or binary, and HEADER."
        )
    form = next((form for form in ("csv", "binary") if form in options), "text")
    return Action("COPY", inside, form, has_header="header" in options)


def _name_of(kind: str, part: str) -> bytes:
    """Return a name as PostgreSQL keeps it. ALL, which is no name, is empty."""
    name = part[1:-1].replace('""', '"') if kind == "name" else fold(part)
    if kind != "name" and name == "all":
        return b""
    return name.encode()[:MAX_NAME].decode(errors="ignore").encode()


# Values -----------------------------------------------------------------------------------------


def without_schema(statement: str) -> str:
    """Return a statement that names the views of the log as `POST /query` does, without ``public.``."""
    parts = [part for _, part in _parts(statement)]
    names = [fold(part.strip('"')) for part in parts]
    for place in range(len(parts) - 2):
        if names[place : place + 2] == ["public", "."] and names[place + 2] in LOG_VIEWS:
            parts[place : place + 2] = "", ""
    return "".join(parts)


def _number_of(positional: str) -> int:
    number = int(positional[1:]) if len(positional) <= len(f"${MAX_PARAMETERS}") else 0
    if not 0 < number <= MAX_PARAMETERS:
        raise Failure("42P02", f"Parameters are $1 to ${MAX_PARAMETERS}.")
    return number


def count_parameters(statement: str) -> int:
    """Return the highest number of ``$1``, ``$2`` and so on.

    Raises:
        Failure: there is no such parameter, or it is above `MAX_PARAMETERS`.
    """
    return max((_number_of(part) for kind, part in _parts(statement) if kind == "positional"), default=0)


def fill(statement: str, literals: Sequence[str]) -> str:
    """Return a statement with literals in place of ``$1``, ``$2`` and so on.

    Raises:
        Failure: it becomes too long.
    """
    filled, size = [], 0
    for kind, part in _parts(statement):
        filled.append(literals[_number_of(part) - 1] if kind == "positional" else part)
        size += len(filled[-1])
        if size > MAX_STATEMENT_BYTES:
            raise Failure("54000", f"With its values the statement has over {MAX_STATEMENT_BYTES} bytes.")
    return "".join(filled)


def with_quoted_columns(statement: str) -> str:
    """Return a statement whose columns PostgreSQL finds too: it takes ``userName`` for ``username``."""
    return "".join(
        quote_name(_WRITTEN_WITH_CAPITALS.get(fold(part), part))
        if kind == "word" and fold(part) in _WRITTEN_WITH_CAPITALS
        else part
        for kind, part in _parts(statement)
    )


#: Of each type of a value: DuckDB's name, and psycopg's reader of its binary format in Python, which checks
#: the size. Text needs neither.
_VALUES: Final[dict[int, tuple[str, type[Loader] | None]]] = {
    **dict.fromkeys((0, 18, 19, 25, 705, 1042, 1043), ("", None)),
    rows.BOOL.oid: ("BOOLEAN", BoolBinaryLoader),
    rows.INT2.oid: ("SMALLINT", numeric.Int2BinaryLoader),
    rows.INT4.oid: ("INTEGER", numeric.Int4BinaryLoader),
    rows.INT8.oid: ("BIGINT", numeric.Int8BinaryLoader),
    rows.FLOAT4.oid: ("FLOAT", numeric.Float4BinaryLoader),
    rows.FLOAT8.oid: ("DOUBLE", numeric.Float8BinaryLoader),
    rows.NUMERIC.oid: ("NUMERIC", numeric.NumericBinaryLoader),
    rows.DATE.oid: ("DATE", datetime.DateBinaryLoader),
    rows.TIMESTAMP.oid: ("TIMESTAMP", datetime.TimestampBinaryLoader),
    rows.TIMESTAMPTZ.oid: ("TIMESTAMPTZ", datetime.TimestamptzBinaryLoader),
    rows.UUID.oid: ("UUID", UUIDBinaryLoader),
    rows.JSON.oid: ("JSON", None),
}
#: Of a NUMERIC, in digits of base 10,000.
_MOST_DIGITS: Final = 25


def null_of(oid: int) -> str:
    """Return a null of a type, as SQL."""
    name, _ = _type_of_value(oid)
    return f"CAST(NULL AS {'DECIMAL(38, 10)' if name == 'NUMERIC' else name or 'VARCHAR'})"


def literal_of(value: bytes | None, oid: int, *, is_binary: bool) -> str:
    """Return a value of a Bind as SQL.

    Raises:
        Failure: its type is not known here, or it is none of its type.
    """
    name, loader = _type_of_value(oid)
    if value is None:
        return "NULL"
    try:
        text = _text_of(value, oid, loader) if is_binary and loader else value.decode()
    except (ValueError, OverflowError, struct.error, IndexError, psycopg.DataError) as error:
        raise Failure("22P03", "A value is not of its type.") from error
    if name != "NUMERIC":
        return f"CAST({quote_text(text)} AS {name})" if name else quote_text(text)
    if re.fullmatch(r"[-+]?(\d{1,19}\.?\d{0,19}|\.\d{1,19})", text, re.ASCII):
        return f"({text})"
    return f"CAST({quote_text(text)} AS DOUBLE)"


def _text_of(value: bytes, oid: int, loader: type[Loader]) -> str:
    if loader is numeric.NumericBinaryLoader:
        count, weight, _, scale = struct.unpack_from("!HhHH", value)
        if count > _MOST_DIGITS or len(value) != 8 + 2 * count or max(abs(weight), scale // 4) > _MOST_DIGITS:
            raise ValueError(value)
        return f"{loader(oid).load(value):f}"
    return str(loader(oid).load(value))


def _type_of_value(oid: int) -> tuple[str, type[Loader] | None]:
    if oid not in _VALUES:
        raise Failure(
            "0A000", f"A value of the type with the OID {oid} cannot be sent here: cast it to text."
        )
    return _VALUES[oid]
