"""What a statement is: whether it reads the log, and whether the catalog server may get it; its values.

PostgreSQL's lexer and ours must cut a text alike, or a statement could hide in what we take for a literal. So
what they could cut otherwise is refused.
"""

from __future__ import annotations

import re
import struct
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from logs.columns import COLUMNS
from logs.queries import parts_of
from logs.quoting import quote_name, quote_text
from logs.sql.guard import MAX_STATEMENT_BYTES
from logs.sql.view import LOG_VIEWS, fold
from logs.wire import rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


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
_SETTINGS: Final = frozenset(
    {"application_name", "bytea_output", "client_min_messages", "datestyle", "extra_float_digits", "geqo"}
    | {"intervalstyle", "lock_timeout", "search_path", "statement_timeout", "timezone", "transaction"}
    | {"default_transaction_isolation", "default_transaction_read_only", "transaction_isolation", "time"}
    | {"transaction_read_only", "characteristics", "client_encoding", "names", "xmloption"}
    | {"idle_in_transaction_session_timeout", "default_transaction_deferrable"}
)
_UTF8: Final = frozenset({"utf8", "utf-8", "unicode", "default"})
_WRITTEN_WITH_CAPITALS: Final = {fold(column.name): column.name for column in COLUMNS}


#: Of one statement.
MAX_PARAMETERS: Final = 1000
#: What PostgreSQL takes for space. Other space of Unicode is a part of names to it.
_SPACE: Final = " \t\n\r\f\v"


def split(text: str) -> list[str]:
    """Return the statements of a text, without empty ones."""
    found, current = [], ""
    for kind, part in parts_of(text):
        if part == ";" and kind == "":
            found.append(current)
            current = ""
        else:
            current += part
    return [one for one in (*found, current) if any(True for _ in _tokens(one))]


def _tokens(statement: str) -> Iterator[tuple[str, str]]:
    """Yield the parts of a statement without comments and space."""
    return ((kind, part) for kind, part in parts_of(statement) if kind != "comment" and part.strip(_SPACE))


def words_of(statement: str) -> list[str]:
    """Return the parts of a statement in lower case, names and texts without their quotes."""
    return [part.strip("\"'").lower() for _, part in _tokens(statement)]


def reads_log(statement: str) -> bool:
    """Return True if a name in a statement is a view of the log. Texts, as catalog queries have, are none."""
    return any(
        kind in {"word", "name"} and fold(part.strip('"')) in LOG_VIEWS for kind, part in parts_of(statement)
    )


def require_catalog(statement: str) -> None:
    """Refuse a statement that the catalog server must not get.

    Raises:
        Failure: with the reason.
    """
    before = ""
    for kind, part in _tokens(statement):
        if (before == "escaped" and kind == "text") or (kind == "" and not part.isascii()):
            raise Failure("42601", "Write E'…' as one text, and names that are not ASCII in quotes.")
        before = kind
    words = words_of(statement)
    if not words:
        return
    if words[0] not in _READING or words[:2] in _TWO_PHASES:
        raise Failure(
            "42501", f"Here {words[0].upper()} is not allowed: the log and its catalog are only read."
        )
    if words[0] == "set":
        names = [word for word in words[1:4] if word not in {"session", "local", "as"}] or [""]
        if names[0] not in _SETTINGS:
            raise Failure("42501", f"Here {names[0]!r} cannot be set.")
        if names[0] in {"client_encoding", "names"} and words[-1] not in _UTF8:
            raise Failure("0A000", "The only encoding here is UTF8.")


@dataclass(frozen=True, slots=True)
class Copy:
    """``COPY (SELECT …) TO STDOUT``: the statement in it, and ``text``, ``csv`` or ``binary``."""

    statement: str
    form: str
    has_header: bool


def read_copy(statement: str) -> Copy | None:
    """Return the COPY of a statement, or None if it is none.

    Raises:
        Failure: it is none that is supported.
    """
    words = words_of(statement)
    if words[:1] != ["copy"]:
        return None
    depth, inside, rest = 0, "", list[str]()
    for kind, part in list(parts_of(statement)):
        depth -= kind == "" and part == ")" and not rest
        if depth > 0:
            inside += part
        elif inside and kind != "comment" and part.strip(_SPACE):
            rest.append(part.strip("\"'").lower())
        depth += kind == "" and part == "(" and not rest
    options = [word for word in rest[1:] if word not in {"(", ")", ",", "with", "format", "true", "on"}]
    is_known = rest[:3] == [")", "to", "stdout"] and {*options} <= {
        "to",
        "stdout",
        "text",
        "csv",
        "binary",
        "header",
    }
    if words[1] != "(" or not is_known:
        raise Failure(
            "0A000", "Write COPY (SELECT …) TO STDOUT, with FORMAT text, csv or binary, and HEADER."
        )
    form = next((word for word in options if word in {"csv", "binary"}), "text")
    return Copy(inside, form, "header" in options)


# Values -----------------------------------------------------------------------------------------


def without_schema(statement: str) -> str:
    """Return a statement that names the views of the log as `POST /query` does, without ``public.``."""
    name = r'(?:"(?:proxy_logs|proxy_logs_time)"|(?i:proxy_logs_time|proxy_logs)\b)'
    found, parts = "", list(parts_of(statement))
    for place, (kind, part) in enumerate(parts):
        following = "".join(text for _, text in parts[place + 1 : place + 3])
        if (
            kind in {"word", "name"}
            and part.strip('"').lower() == "public"
            and re.match(rf"\.{name}", following)
        ):
            parts[place + 1] = ("", "")
        else:
            found += part
    return found


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
    return max((_number_of(part) for kind, part in parts_of(statement) if kind == "positional"), default=0)


def fill(statement: str, literals: Sequence[str]) -> str:
    """Return a statement with literals in place of ``$1``, ``$2`` and so on.

    Raises:
        Failure: it becomes too long.
    """
    filled, size = [], 0
    for kind, part in parts_of(statement):
        filled.append(literals[_number_of(part) - 1] if kind == "positional" else part)
        size += len(filled[-1])
        if size > MAX_STATEMENT_BYTES:
            raise Failure("54000", f"With its values the statement has over {MAX_STATEMENT_BYTES} bytes.")
    return "".join(filled)


def find_deallocated(statement: str) -> bytes | None:
    """Return the name of the prepared statement that ``DEALLOCATE`` names; empty for ALL, None for another
    statement."""
    tokens = list(_tokens(statement))
    if not tokens or tokens[0][1].lower() != "deallocate":
        return None
    kind, part = tokens[-1]
    name = part[1:-1].replace('""', '"') if kind == "name" else part.lower()
    return b"" if kind != "name" and name == "all" else name.encode()


def with_quoted_columns(statement: str) -> str:
    """Return a statement whose columns PostgreSQL finds too: it takes ``userName`` for ``username``."""
    return "".join(
        quote_name(_WRITTEN_WITH_CAPITALS.get(fold(part), part))
        if kind == "word" and fold(part) in _WRITTEN_WITH_CAPITALS
        else part
        for kind, part in parts_of(statement)
    )


def _since_2000(micros: int) -> str:
    return (datetime(2000, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)).isoformat(" ")


def _unpacked(code: str) -> Callable[[bytes], str]:
    def read(data: bytes) -> str:
        (value,) = struct.unpack(f"!{code}", data)
        return str(value)

    return read


#: Of a NUMERIC, in digits of base 10,000.
_MOST_DIGITS: Final = 25


def _numeric(data: bytes) -> str:
    count, weight, sign, scale = struct.unpack_from("!HhHH", data)
    exponent = 4 * (weight + 1 - count)
    if sign not in {0, 0x4000} or count > _MOST_DIGITS or abs(exponent) + count > 100:
        raise ValueError(data)
    number = 0
    for digit in struct.unpack_from(f"!{count}H", data, 8):
        number = number * 10_000 + digit
    digits = str(number * 10 ** max(exponent, 0)).rjust(1 - min(exponent, 0), "0")
    whole, fraction = digits[: len(digits) + min(exponent, 0)], digits[len(digits) + min(exponent, 0) :]
    return f"{'-' if sign else ''}{whole}.{fraction[:scale].ljust(1, '0')}"


def _utf8(data: bytes) -> str:
    return data.decode()


#: Of each type of a value: DuckDB's name, and how its binary format is read. Text needs no cast.
_VALUES: Final[dict[int, tuple[str, Callable[[bytes], str]]]] = {
    **dict.fromkeys((0, 18, 19, 25, 705, 1042, 1043), ("", _utf8)),
    rows.BOOL.oid: ("BOOLEAN", lambda data: str(data != b"\0")),
    rows.INT2.oid: ("SMALLINT", _unpacked("h")),
    rows.INT4.oid: ("INTEGER", _unpacked("i")),
    rows.INT8.oid: ("BIGINT", _unpacked("q")),
    rows.FLOAT4.oid: ("FLOAT", _unpacked("f")),
    rows.FLOAT8.oid: ("DOUBLE", _unpacked("d")),
    rows.NUMERIC.oid: ("NUMERIC", _numeric),
    rows.DATE.oid: ("DATE", lambda data: _since_2000(struct.unpack("!i", data)[0] * 86_400_000_000)[:10]),
    rows.TIMESTAMP.oid: ("TIMESTAMP", lambda data: _since_2000(struct.unpack("!q", data)[0])[:26]),
    rows.TIMESTAMPTZ.oid: ("TIMESTAMPTZ", lambda data: _since_2000(struct.unpack("!q", data)[0])),
    rows.UUID.oid: ("UUID", lambda data: str(uuid.UUID(bytes=data))),
    rows.JSON.oid: ("JSON", _utf8),
}


def null_of(oid: int) -> str:
    """Return a null of a type, as SQL."""
    name, _ = _type_of_value(oid)
    return f"CAST(NULL AS {'DECIMAL(38, 10)' if name == 'NUMERIC' else name or 'VARCHAR'})"


def literal_of(value: bytes | None, oid: int, *, is_binary: bool) -> str:
    """Return a value of a Bind as SQL.

    Raises:
        Failure: its type is not known here, or it is none of its type.
    """
    name, read = _type_of_value(oid)
    if value is None:
        return "NULL"
    try:
        text = read(value) if is_binary else value.decode()
    except (ValueError, OverflowError, struct.error) as error:
        raise Failure("22P03", "A value is not of its type.") from error
    if name != "NUMERIC":
        return f"CAST({quote_text(text)} AS {name})" if name else quote_text(text)
    if re.fullmatch(r"[-+]?(\d{1,19}\.?\d{0,19}|\.\d{1,19})", text, re.ASCII):
        return f"({text})"
    return f"CAST({quote_text(text)} AS DOUBLE)"


def _type_of_value(oid: int) -> tuple[str, Callable[[bytes], str]]:
    if oid not in _VALUES:
        raise Failure(
            "0A000", f"A value of the type with the OID {oid} cannot be sent here: cast it to text."
        )
    return _VALUES[oid]
