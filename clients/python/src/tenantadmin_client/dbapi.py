"""A DB-API 2.0 (PEP 249) module over the log of a tenant: read-only, without transactions."""

from __future__ import annotations

import base64
import datetime as dt
import json
import re
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import islice
from typing import Any

import httpx

from tenantadmin_client.client import Client, path_of
from tenantadmin_client.errors import ApiError, BadRequest

apilevel = "2.0"
#: Threads may share the module, and no connection.
threadsafety = 1
#: With a style that has a ``%``, ``LIKE '2026-11-%'`` would need a second one.
paramstyle = "qmark"


class Warning(Exception):  # noqa: A001 - the name that PEP 249 demands
    """Not raised."""


class Error(Exception):
    """Any error of this module."""


class InterfaceError(Error):
    """The module was used wrongly: for example, a cursor was read before it executed, or after it closed."""


class DatabaseError(Error):
    """The service refused a statement, or did not answer."""


class DataError(DatabaseError):
    """A result is not complete."""


class OperationalError(DatabaseError):
    """The token is not valid here, a limit was reached, or the service is away."""


class IntegrityError(DatabaseError):
    """Not raised."""


class InternalError(DatabaseError):
    """Not raised."""


class ProgrammingError(DatabaseError):
    """The statement is wrong or not allowed. The message of the service says how to correct it."""


class NotSupportedError(DatabaseError):
    """The log can only be read."""


class _TypeGroup(frozenset[str]):
    """Type names that PEP 249 compares as one: ``description[0][1] == NUMBER``."""

    __hash__ = frozenset.__hash__

    def __eq__(self, other: object) -> bool:
        return other in self if isinstance(other, str) else super().__eq__(other)

    def __ne__(self, other: object) -> bool:
        return not self == other


_INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")
STRING = _TypeGroup({"VARCHAR", "UUID", "INTERVAL", "BIT", "ENUM"})
BINARY = _TypeGroup({"BLOB"})
NUMBER = _TypeGroup({*_INTEGERS, *(f"U{name}" for name in _INTEGERS), "FLOAT", "DOUBLE", "DECIMAL"})
_TIMESTAMPS = {f"TIMESTAMP{suffix}" for suffix in ("", "_S", "_MS", "_NS", " WITH TIME ZONE")}
_TIMES = ("TIME", "TIME WITH TIME ZONE")
DATETIME = _TypeGroup({*_TIMESTAMPS, *_TIMES, "DATE"})
ROWID = _TypeGroup()

Date, Time, Timestamp = dt.date, dt.time, dt.datetime
DateFromTicks = dt.date.fromtimestamp
TimestampFromTicks = dt.datetime.fromtimestamp
Binary = bytes

_MICROSECOND = dt.timedelta(microseconds=1)
#: Digits of the engine's longest DECIMAL. It makes a DOUBLE of a longer number.
_DIGITS = 38


def TimeFromTicks(ticks: float) -> dt.time:  # noqa: N802 - the name that PEP 249 demands
    """Return the local time of day of seconds since 1970."""
    return dt.datetime.fromtimestamp(ticks).time()  # noqa: DTZ006 - as PEP 249 has it


def connect(
    url: str, *, tenant: str, pat: str, allow_truncated: bool = False, timeout: float = 60, client: Any = None
) -> Connection:
    """Connect to the log of a tenant.

    Args:
        pat: a personal access token with the scope ``logs:query``.
        allow_truncated: give a result that the service cut. Otherwise it is a `DataError`.
        timeout: of one request, in seconds.
        client: a `Client` to use in place of ``url`` and ``pat``; for tests.
    """
    return Connection(client or Client(url, pat, timeout=timeout), tenant, allow_truncated=allow_truncated)


class Connection:
    """A client and a tenant. There are no transactions: commit and rollback do nothing.

    Each method raises `InterfaceError` once the connection is closed.
    """

    Warning, Error, InterfaceError, DatabaseError = Warning, Error, InterfaceError, DatabaseError
    DataError, OperationalError, IntegrityError = DataError, OperationalError, IntegrityError
    InternalError, ProgrammingError, NotSupportedError = InternalError, ProgrammingError, NotSupportedError

    def __init__(self, client: Client, tenant: str, *, allow_truncated: bool) -> None:
        self._client = client
        self._path = path_of("tenants", tenant, "query")
        self._allows_truncated = allow_truncated
        self._is_closed = False

    def cursor(self) -> Cursor:
        """Return a new cursor."""
        self.check_open()
        return Cursor(self)

    def commit(self) -> None:
        """Do nothing."""
        self.check_open()

    def rollback(self) -> None:
        """Do nothing."""
        self.check_open()

    def close(self) -> None:
        """Close the connections to the service."""
        self.check_open()
        self._is_closed = True
        self._client.close()

    def check_open(self) -> None:
        """Raise `InterfaceError` if the connection is closed."""
        if self._is_closed:
            raise InterfaceError("The connection is closed.")

    def columns(self) -> list[dict[str, Any]]:
        """Return ``{name, type, meaning, …}`` for each column of ``proxy_logs``."""
        columns: list[dict[str, Any]] = self._request("GET", f"{self._path}/schema").json()["columns"]
        return columns

    def run(self, statement: str) -> dict[str, Any]:
        """Return the answer of the service: ``{columns, rows, rowCount, truncated, …}``.

        Raises:
            DatabaseError: one of its kinds.
        """
        response = self._request("POST", self._path, json={"sql": statement})
        answer: dict[str, Any] = json.loads(response.content, parse_float=Decimal)
        if answer["truncated"] and not self._allows_truncated:
            raise DataError(
                f"The service cut the result after {answer['rowCount']:,} rows. Aggregate, or write a LIMIT"
                " of at most so many rows."
            )
        return answer

    def _request(self, method: str, path: str, **options: Any) -> httpx.Response:
        self.check_open()
        try:
            return self._client.request(method, path, **options)
        except BadRequest as error:
            raise ProgrammingError(error.message) from error
        except ApiError as error:
            raise OperationalError(str(error)) from error
        except httpx.TransportError as error:
            raise OperationalError(f"The service did not answer: {error}") from error


class Cursor:
    """Runs statements and gives their rows."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.arraysize = 1
        self.description: list[tuple[Any, ...]] | None = None
        self.rowcount = -1
        self._rows: Iterator[tuple[Any, ...]] | None = None
        self._is_closed = False

    def execute(self, statement: str, parameters: Sequence[Any] | None = None) -> Cursor:
        """Run a statement. A literal takes the place of each ``?`` outside of texts, names and comments.

        Raises:
            DatabaseError: one of its kinds.
        """
        self._check_open()
        self.description, self._rows, self.rowcount = None, None, -1
        answer = self.connection.run(with_parameters(statement, parameters or ()))
        if not answer["columns"]:
            return self
        kinds = [_kind(column["type"]) for column in answer["columns"]]
        names = [column["name"] for column in answer["columns"]]
        self.description = [
            (name, kind, None, None, precision, scale, None)
            for name, (kind, precision, scale) in zip(names, kinds, strict=True)
        ]
        readers = [(name, _READERS.get(kind)) for name, (kind, _, _) in zip(names, kinds, strict=True)]
        rows: list[dict[str, Any]] = answer["rows"]
        self._rows = (
            tuple(
                value if (value := row[name]) is None or read is None else read(value)
                for name, read in readers
            )
            for row in rows
        )
        self.rowcount = len(rows)
        return self

    def executemany(self, *_: Any) -> None:
        """Refuse: only writes are run many times.

        Raises:
            NotSupportedError
        """
        raise NotSupportedError("The log can only be read.")

    def fetchone(self) -> tuple[Any, ...] | None:
        """Return the next row, or None."""
        return next(self._remaining(), None)

    def fetchmany(self, size: int | None = None) -> list[tuple[Any, ...]]:
        """Return the next ``size`` rows; ``arraysize`` without a number."""
        remaining = self._remaining()
        return list(islice(remaining, self.arraysize if size is None else size))

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Return all rows that are left."""
        return list(self._remaining())

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return self._remaining()

    def close(self) -> None:
        """Forget the rows."""
        self._check_open()
        self._is_closed, self.description, self._rows = True, None, None

    def setinputsizes(self, sizes: Sequence[Any]) -> None:
        """Do nothing."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Do nothing."""

    def _remaining(self) -> Iterator[tuple[Any, ...]]:
        self._check_open()
        if self._rows is None:
            raise InterfaceError("Execute a statement first.")
        return self._rows

    def _check_open(self) -> None:
        self.connection.check_open()
        if self._is_closed:
            raise InterfaceError("The cursor is closed.")


# Parameters --------------------------------------------------------------------------------------

#: A character of a name beside letters. The engine takes some that have no width for spaces.
_OTHER = r"[^\x00-\x7f\s\u200b-\u200f\u2060\ufeff]"
#: What the engine reads as one token, as far as a question mark or a quotation mark can be in it.
_TOKEN = re.compile(
    rf"""
    (?P<parameter> \? )
    | [eE]' (?: [^'\\] | \\. | '' )* (?: ' | \\? \Z )
    | ' (?: [^'] | '' )* (?: ' | \Z )
    | " (?: [^"] | "" )* (?: " | \Z )
    | \$ (?P<tag> (?: (?: [A-Za-z_] | {_OTHER} ) (?: \w | {_OTHER} )* )? ) \$ .*? (?: \$ (?P=tag) \$ | \Z )
    | -- [^\n\r]*
    | (?P<comment> /\* )
    | \d [\d_]* (?: \. [\d_]* )? (?: [eE] [+-]? \d+ )?
    | (?: [A-Za-z_] | {_OTHER} ) (?: [\w$] | {_OTHER} )*
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT_ENDS = re.compile(r"/\*|\*/")


def with_parameters(statement: str, parameters: Sequence[Any]) -> str:
    """Return a statement with its parameters as literals. No value changes the tokens around it.

    Raises:
        ProgrammingError: there are more or fewer parameters than question marks, or one has no literal.
    """
    if not parameters:
        return statement
    if isinstance(parameters, (Mapping, str, bytes)):
        raise ProgrammingError("Write ? in the statement, and give the parameters as a list.")
    places = list(_places(statement))
    if len(places) != len(parameters):
        raise ProgrammingError(
            f"The statement has {len(places)} question marks outside of texts and comments, and there are"
            f" {len(parameters)} parameters."
        )
    parts, end = [], 0
    for place, value in zip(places, parameters, strict=True):
        # Brackets end the token before the value: -1 after a minus would begin a comment, and 'x' after an E
        # would be another text.
        operand = literal(value)
        parts += [statement[end:place], operand if operand.startswith("(") else f"({operand})"]
        end = place + 1
    return "".join([*parts, statement[end:]])


def _places(statement: str) -> Iterator[int]:
    """Yield where the question marks are that stand for parameters."""
    position = 0
    while found := _TOKEN.search(statement, position):
        position = found.end()
        if found["parameter"]:
            yield found.start()
        elif found["comment"]:
            position = _comment_end(statement, position)


def _comment_end(statement: str, position: int) -> int:
    """Return where a comment ends of which the first mark is read. Comments are nested."""
    depth = 1
    while depth and (found := _COMMENT_ENDS.search(statement, position)):
        depth += 1 if found[0] == "/*" else -1
        position = found.end()
    return len(statement) if depth else position


def literal(value: object) -> str:
    """Return a value as SQL that is one operand, whatever is before and after it.

    A scalar of numpy or pandas is what its ``item()`` is.

    Raises:
        ProgrammingError: its type has no literal, or the engine cannot hold the value exactly.
    """
    if value is None or (isinstance(value, dt.datetime) and value != value):
        return "NULL"
    if hasattr(value, "item") and hasattr(value, "dtype") and getattr(value, "shape", None) == ():
        given, value = value, value.item()
        if isinstance(value, int) and given.dtype.kind not in "biu":  # a time of nanoseconds
            raise ProgrammingError(f"A {given.dtype} cannot be a parameter. Convert it to microseconds.")
    for kind, write in _WRITERS:
        if isinstance(value, kind):
            return write(value)
    raise ProgrammingError(f"A {type(value).__name__} cannot be a parameter.")


def _integer(value: int) -> str:
    if not -(2**127) <= value < 2**128:
        raise ProgrammingError("An integer of more than 128 bits cannot be a parameter.")
    return _signed(f"{int(value)}")


def _decimal(value: Decimal) -> str:
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise ProgrammingError(f"A Decimal cannot be a parameter if it is {value}.")
    if max(len(digits), -exponent, len(digits) + exponent) > _DIGITS:
        raise ProgrammingError(f"A Decimal of more than {_DIGITS} digits cannot be a parameter.")
    return _signed(f"{value:f}")


def _signed(number: str) -> str:
    return f"({number})" if number.startswith("-") else number


def _text(value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ProgrammingError("A text with half a surrogate pair cannot be a parameter.") from None
    if "\0" in value:
        raise ProgrammingError("A text with a NUL character cannot be a parameter.")
    return "'" + value.replace("'", "''") + "'"


def _datetime(value: dt.datetime) -> str:
    if getattr(value, "nanosecond", 0):
        raise ProgrammingError("A time with nanoseconds cannot be a parameter. Round it to microseconds.")
    if value.tzinfo is None:
        return f"CAST('{value.isoformat(' ')}' AS TIMESTAMP)"
    try:
        # The engine reads no offsets with seconds.
        value = value.astimezone(dt.timezone.utc)
    except OverflowError:
        raise ProgrammingError("A time outside of the years 1 to 9999 UTC cannot be a parameter.") from None
    return f"CAST('{value.isoformat(' ')}' AS TIMESTAMPTZ)"


def _duration(value: dt.timedelta) -> str:
    microseconds = value // _MICROSECOND
    if abs(microseconds) >= 2**63:
        raise ProgrammingError("A time of more than 292,000 years cannot be a parameter.")
    return f"to_microseconds({microseconds})"


#: Writers of literals by type. A type comes before those that it belongs to.
_WRITERS: tuple[tuple[type, Callable[[Any], str]], ...] = (
    (bool, lambda value: "true" if value else "false"),
    (float, lambda value: f"CAST('{float(value)!r}' AS DOUBLE)"),
    (int, _integer),
    (Decimal, _decimal),
    (str, _text),
    (bytes, lambda value: f"from_hex('{value.hex()}')"),
    (bytearray, lambda value: f"from_hex('{value.hex()}')"),
    (memoryview, lambda value: f"from_hex('{value.hex()}')"),
    (dt.datetime, _datetime),
    (dt.date, lambda value: f"CAST('{value.isoformat()}' AS DATE)"),
    (dt.time, lambda value: f"CAST('{value.isoformat()}' AS {'TIME' if value.tzinfo is None else 'TIMETZ'})"),
    (dt.timedelta, _duration),
    (uuid.UUID, lambda value: f"CAST('{value}' AS UUID)"),
)

# Results -----------------------------------------------------------------------------------------

_DECIMAL = re.compile(r"DECIMAL\((\d+),(\d+)\)")
_DURATION = re.compile(
    r"P(?:(-?\d+)D)?(?:T(?:(-?\d+)H)?(?:(-?\d+)M)?(?:(-?)(\d+)(?:\.(\d{1,6})0*)?S)?)?",
)
#: What is before a fraction of a second, at most six digits of it, and a zone.
_TIME_OF_DAY = re.compile(r"(.*:\d\d)(?:\.(\d{1,6})\d*)?(Z|[+-]\d\d:\d\d)?")


def _kind(type_: str) -> tuple[str, int | None, int | None]:
    """Return the name of a type without its arguments, and the precision and scale of a DECIMAL.

    A list or a structure is JSON.
    """
    if found := _DECIMAL.fullmatch(type_):
        return "DECIMAL", int(found[1]), int(found[2])
    if type_.endswith("]") or type_.startswith(("STRUCT", "MAP", "UNION")):
        return "JSON", None, None
    return re.sub(r"\(.*\)$", "", type_), None, None


def _timedelta(text: str) -> dt.timedelta:
    """Return an ISO 8601 duration, each part of which has its own sign.

    Raises:
        ValueError: it has months or years, which have no fixed length.
    """
    found = _DURATION.fullmatch(text)
    if found is None:
        raise ValueError(text)
    days, hours, minutes = (int(part or 0) for part in found.groups()[:3])
    rest = dt.timedelta(seconds=int(found[5] or 0), microseconds=int(f"{found[6] or '':0<6}"))
    return dt.timedelta(days=days, hours=hours, minutes=minutes) + (-rest if found[4] else rest)


def _or_text(read: Callable[[str], object]) -> Callable[[str], object]:
    """Return text that Python has no value for, such as ``infinity`` and the year 12000, as it is."""

    def read_or_keep(text: str) -> object:
        try:
            return read(text)
        except (ValueError, OverflowError):
            return text

    return read_or_keep


def _micros(text: str) -> str:
    """Return a time as Python 3.10 reads it: six digits of a second, and an offset in place of Z."""
    found = _TIME_OF_DAY.fullmatch(text)
    if found is None:
        return text
    whole, fraction, zone = found.groups("")
    return f"{whole}{f'.{fraction:0<6}' if fraction else ''}{'+00:00' if zone == 'Z' else zone}"


#: What makes a Python value of a JSON value, by type.
_READERS: dict[str, Callable[[Any], Any]] = {
    "FLOAT": float,
    "DOUBLE": float,
    "DECIMAL": Decimal,
    "BLOB": base64.b64decode,
    "UUID": uuid.UUID,
    "INTERVAL": _or_text(_timedelta),
    "DATE": _or_text(dt.date.fromisoformat),
    **dict.fromkeys(_TIMES, _or_text(lambda text: dt.time.fromisoformat(_micros(text)))),
    **dict.fromkeys(_TIMESTAMPS, _or_text(lambda text: dt.datetime.fromisoformat(_micros(text)))),
}
