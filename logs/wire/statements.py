"""What a statement is: whether it reads the log, and whether the catalog server may get it; its values.

PostgreSQL's lexer and ours must cut a text alike, or a statement could hide in what we take for a literal. So
what they could cut otherwise is refused.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, TypeVar

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
#: What PostgreSQL takes for space. Other space of Unicode is a part of names to it.
_SPACE: Final = " \t\n\r\f\v"

#: The kinds and texts of the parts of a statement.
_Parts: TypeAlias = "Sequence[tuple[str, str]]"
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement, and what is known of it. Its parts, which may take megabytes, are not kept.

    To cut 64 KiB into parts takes a tenth of a second, so it is done once.

    Attributes:
        use: what it makes, uses or ends by a name.
        reads_log: a name in it is a view of the log. Texts, as catalog queries have, are none.
        parameters: the highest number of ``$1``, ``$2`` and so on; or why there is no such parameter.
        action: what it does if it reads the log or names a cursor over it; or why it cannot.
        refusal: why the catalog server must not get it.
    """

    text: str
    use: Use
    reads_log: bool
    parameters: int | Failure
    action: Action | Failure
    refusal: Failure | None


def require(known: _T | Failure) -> _T:
    """Return what is known of a statement, or raise why it is refused."""
    if isinstance(known, Failure):
        raise known
    return known


def read_statements(text: str) -> list[Statement]:
    """Return the statements of a text, without empty ones."""
    found, current = [], list[tuple[str, str]]()
    for part in (*parts_of(text), ("", ";")):
        if part == ("", ";"):
            found.append(current)
            current = []
        else:
            current.append(part)
    return [_read(parts) for parts in found if _tokens(parts)]


def read_statement(text: str) -> Statement:
    """Return one statement, which may be empty."""
    return _read(list(parts_of(text)))


def _read(parts: _Parts) -> Statement:
    tokens = _tokens(parts)
    words = _words(tokens)
    use = _use_of(tokens, size=sum(len(part) for _, part in parts))
    return Statement(
        text=_join(parts),
        use=use,
        reads_log=any(
            kind in {"word", "name"} and fold(part.strip('"')) in LOG_VIEWS for kind, part in tokens
        ),
        parameters=_known(_count_parameters, tokens),
        action=_known(_read_action, parts, words, use),
        refusal=_refusal(parts, tokens, words),
    )


def _known(read: Callable[..., _T], *arguments: Any) -> _T | Failure:
    try:
        return read(*arguments)
    except Failure as failure:
        # Its frames would keep the parts.
        return failure.with_traceback(None)


def _join(parts: _Parts) -> str:
    return "".join(part for _, part in parts)


def _tokens(parts: _Parts) -> _Parts:
    """Return parts without comments and space."""
    return [(kind, part) for kind, part in parts if kind != "comment" and part.strip(_SPACE)]


def _words(tokens: _Parts) -> list[str]:
    """Return parts in lower case, names and texts without their quotes."""
    return [part.strip("\"'").lower() for _, part in tokens]


def _refusal(parts: _Parts, tokens: _Parts, words: Sequence[str]) -> Failure | None:
    """Return why the catalog server must not get a statement."""
    if (odd := _odd_part(parts, tokens)) or not words:
        return odd
    if words[0] not in _READING or words[:2] in _TWO_PHASES:
        return Failure(
            "42501", f"Here {words[0].upper()} is not allowed: the log and its catalog are only read."
        )
    if words[0] == "declare" and ("with", "hold") in pairwise(words):
        return Failure("0A000", "WITH HOLD is for cursors over the log.")
    if words[0] == "set":
        names = [word for word in words[1:4] if word not in {"session", "local", "as"}] or [""]
        # After a dot is a setting of the client's own, of any size.
        following = words[words.index(names[0]) + 1 :] if names[0] in words else []
        if names[0] not in SETTINGS or following[:1] == ["."]:
            return Failure("42501", f"Here {names[0]!r} cannot be set.")
        if names[0] in {"client_encoding", "names"} and words[-1] not in _UTF8:
            return Failure("0A000", "The only encoding here is UTF8.")
    return None


def _odd_part(parts: _Parts, tokens: _Parts) -> Failure | None:
    """Return a refusal if PostgreSQL would cut or read a part otherwise than we do."""
    before = ""
    for kind, part in tokens:
        if (before == "escaped" and kind == "text") or (kind == "" and not part.isascii()):
            return Failure("42601", "Write E'…' as one text, and names that are not ASCII in quotes.")
        before = kind
    for (_, first), (_, second), (kind, _) in zip(parts, parts[1:], parts[2:], strict=False):
        if kind == "name" and (first.lower(), second) == ("u", "&"):
            return Failure("42601", 'Write names without U&"…".')
    return None


@dataclass(frozen=True, slots=True)
class Action:
    """What a statement over the log does.

    Attributes:
        verb: ``SELECT``, ``COPY``, ``DECLARE``, ``FETCH``, ``MOVE``, ``CLOSE`` or ``DEALLOCATE``.
        query: the statement that reads the log, as `POST /query` knows it.
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


def _use_of(tokens: _Parts, *, size: int) -> Use:
    verb = tokens[0][1].lower() if len(tokens) > 1 else ""
    if (place := _NAMED.get(verb)) is None:
        return Use(size=size)
    return Use(verb, _name_of(*tokens[place]), size)


def _read_action(parts: _Parts, words: Sequence[str], use: Use) -> Action:
    """Raises Failure if it is a COPY that is not supported, or a FETCH that goes back."""
    match words[:1]:
        case ["copy"]:
            return _read_copy(parts, words)
        case ["declare"]:
            return _read_declare(parts)
        case ["close" | "deallocate"] if use.name:
            return Action(use.verb.upper(), cursor=use.name)
        case ["fetch" | "move"] if use.name:
            direction = "".join(word for word in words[1:-1] if word not in {"from", "in"})
            known = re.fullmatch(r"(?:forward)?([1-9][0-9]{0,17}|all)?|next", direction)
            if known is None:
                raise Failure("55000", f"A cursor over the log only goes forward: FETCH n FROM {words[-1]}.")
            count = None if known[1] == "all" else int(known[1] or 1)
            return Action(use.verb.upper(), cursor=use.name, count=count)
    return Action("SELECT", _without_schema(parts))


def _read_declare(parts: _Parts) -> Action:
    end = next((n for n, part in enumerate(parts) if part[0] == "word" and part[1].lower() == "for"), 0)
    tokens = _tokens(parts[:end])
    options = [part.lower() for _, part in tokens[2:]]
    if "cursor" not in options:
        raise Failure("42601", "Write DECLARE name CURSOR FOR SELECT ….")
    return Action(
        "DECLARE",
        _without_schema(parts[end + 1 :]),
        form="binary" if "binary" in options else "text",
        cursor=_name_of(*tokens[1]),
        is_held=options[-2:] == ["with", "hold"],
    )


def _read_copy(parts: _Parts, words: Sequence[str]) -> Action:
    depth, inside, rest = 0, list[tuple[str, str]](), list[tuple[str, str]]()
    for kind, part in parts:
        depth -= kind == "" and part == ")" and not rest
        if depth > 0:
            inside.append((kind, part))
        elif inside:
            rest += _tokens([(kind, part)])
        depth += kind == "" and part == "(" and not rest
    ending = _words(rest)
    options = {*ending[3:]} - {"(", ")", ",", "with", "format", "true", "on"}
    is_known = ending[:3] == [")", "to", "stdout"] and options <= {"text", "csv", "binary", "header"}
    if words[1:2] != ["("] or not is_known:
        raise Failure(
            "0A000", "Write COPY (SELECT …) TO STDOUT, with FORMAT text, csv or binary, and HEADER."
        )
    form = next((form for form in ("csv", "binary") if form in options), "text")
    return Action("COPY", _without_schema(inside), form, has_header="header" in options)


def _without_schema(parts: _Parts) -> str:
    """Return a statement that names the views of the log as `POST /query` does, without ``public.``."""
    texts = [part for _, part in parts]
    names = [fold(part.strip('"')) for part in texts]
    for place in range(len(texts) - 2):
        if names[place : place + 2] == ["public", "."] and names[place + 2] in LOG_VIEWS:
            texts[place : place + 2] = "", ""
    return "".join(texts)


def _name_of(kind: str, part: str) -> bytes:
    """Return a name as PostgreSQL keeps it. ALL, which is no name, is empty."""
    name = part[1:-1].replace('""', '"') if kind == "name" else fold(part)
    if kind != "name" and name == "all":
        return b""
    return name.encode()[:MAX_NAME].decode(errors="ignore").encode()


# Values -----------------------------------------------------------------------------------------


def _number_of(positional: str) -> int:
    number = int(positional[1:]) if len(positional) <= len(f"${MAX_PARAMETERS}") else 0
    if not 0 < number <= MAX_PARAMETERS:
        raise Failure("42P02", f"Parameters are $1 to ${MAX_PARAMETERS}.")
    return number


def _count_parameters(tokens: _Parts) -> int:
    return max((_number_of(part) for kind, part in tokens if kind == "positional"), default=0)


def read_filled(statement: str, literals: Sequence[str]) -> Statement:
    """Return a statement with literals in place of ``$1``, ``$2`` and so on.

    Raises:
        Failure: it becomes too long.
    """
    filled, size = [], 0
    for kind, part in parts_of(statement):
        filled.append(("text", literals[_number_of(part) - 1]) if kind == "positional" else (kind, part))
        size += len(filled[-1][1])
        if size > MAX_STATEMENT_BYTES:
            raise Failure("54000", f"With its values the statement has over {MAX_STATEMENT_BYTES} bytes.")
    return _read(filled)


def with_quoted_columns(statement: str) -> str:
    """Return a statement whose columns PostgreSQL finds too: it takes ``userName`` for ``username``."""
    return "".join(
        quote_name(_WRITTEN_WITH_CAPITALS.get(fold(part), part))
        if kind == "word" and fold(part) in _WRITTEN_WITH_CAPITALS
        else part
        for kind, part in parts_of(statement)
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
