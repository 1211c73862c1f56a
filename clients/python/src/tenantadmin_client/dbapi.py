"""A DB-API 2.0 (PEP 249) module over the log of a tenant: read-only, without transactions."""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from tenantadmin_client.client import Client
from tenantadmin_client.errors import ApiError, BadRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

apilevel = "2.0"
#: Threads may share the module, and no connection.
threadsafety = 1
paramstyle = "pyformat"


class Warning(Exception):  # noqa: A001 - the name that PEP 249 demands
    """Not raised."""


class Error(Exception):
    """Any error of this module."""


class InterfaceError(Error):
    """The module was used wrongly: for example, a cursor was read before it executed."""


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
DATETIME = _TypeGroup({*_TIMESTAMPS, "DATE", "TIME"})
ROWID = _TypeGroup()


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
    """A client and a tenant. There are no transactions: commit and rollback do nothing."""

    def __init__(self, client: Client, tenant: str, *, allow_truncated: bool) -> None:
        self._client = client
        self._path = f"/tenants/{quote(tenant, safe='')}/query"
        self._allows_truncated = allow_truncated

    def cursor(self) -> Cursor:
        """Return a new cursor."""
        return Cursor(self)

    def commit(self) -> None:
        """Do nothing."""

    def rollback(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Close the connections to the service."""
        self._client.close()

    def columns(self) -> list[dict[str, Any]]:
        """Return ``{name, type, description, …}`` for each column of ``proxy_logs``."""
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

    def execute(self, statement: str, parameters: Mapping[str, Any] | Sequence[Any] | None = None) -> Cursor:
        """Run a statement. Parameters (``%(name)s`` or ``%s``) are written into it as literals.

        Raises:
            DatabaseError: one of its kinds.
        """
        self.description, self._rows, self.rowcount = None, None, -1
        answer = self.connection.run(with_parameters(statement, parameters))
        names = [(column["name"], column["type"]) for column in answer["columns"]]
        self.description = [(name, _base(kind), None, None, None, None, None) for name, kind in names]
        readers = [(name, _reader(_base(kind))) for name, kind in names]
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
        return [row for _, row in zip(range(size or self.arraysize), remaining, strict=False)]

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Return all rows that are left."""
        return list(self._remaining())

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return self._remaining()

    def close(self) -> None:
        """Forget the rows."""
        self.description, self._rows = None, None

    def setinputsizes(self, sizes: Sequence[Any]) -> None:
        """Do nothing."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Do nothing."""

    def _remaining(self) -> Iterator[tuple[Any, ...]]:
        if self._rows is None:
            raise InterfaceError("Execute a statement first.")
        return self._rows


def with_parameters(statement: str, parameters: Mapping[str, Any] | Sequence[Any] | None) -> str:
    """Return a statement with its parameters as literals.

    Raises:
        ProgrammingError: a parameter is missing or has no literal.
    """
    if parameters is None:
        return statement
    literals: Any = (
        {name: literal(value) for name, value in parameters.items()}
        if isinstance(parameters, Mapping)
        else tuple(map(literal, parameters))
    )
    try:
        return str(statement % literals)
    except (KeyError, TypeError, ValueError) as error:
        raise ProgrammingError(f"The parameters do not fit the statement: {error}. Write % as %%.") from error


def literal(value: object) -> str:
    """Return a value as SQL.

    Raises:
        ProgrammingError: its type has no literal, or it is text with a NUL character.
    """
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"'{value!r}'::DOUBLE"
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, Decimal) and value.is_finite():
        return f"{value:f}"
    if isinstance(value, str):
        if "\0" in value:
            raise ProgrammingError("A text with a NUL character cannot be a parameter.")
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, dt.datetime):
        kind = "TIMESTAMP" if value.tzinfo is None else "TIMESTAMPTZ"
        return f"{kind} '{value.isoformat(' ')}'"
    if isinstance(value, (dt.date, dt.time)):
        return f"{type(value).__name__.upper()} '{value.isoformat()}'"
    raise ProgrammingError(f"A {type(value).__name__} cannot be a parameter.")


def _base(kind: str) -> str:
    """Return the name of a type without its arguments. A list or a structure is read as JSON."""
    if kind.endswith("]") or kind.startswith(("STRUCT", "MAP", "UNION")):
        return "JSON"
    return re.sub(r"\(.*\)$", "", kind)


def _reader(kind: str) -> Callable[[Any], Any] | None:
    """Return what makes a Python value of a JSON value."""
    if kind in {"FLOAT", "DOUBLE"}:
        return float
    if kind == "DECIMAL":
        return Decimal
    if kind in _TIMESTAMPS:
        return _or_text(lambda text: dt.datetime.fromisoformat(_micros(text)))
    if kind == "DATE":
        return _or_text(dt.date.fromisoformat)
    if kind == "TIME":
        return _or_text(lambda text: dt.time.fromisoformat(_micros(text)))
    return None


def _or_text(read: Callable[[str], object]) -> Callable[[str], object]:
    """Return text that Python has no value for, such as ``infinity`` and the year 12000, as it is."""

    def read_or_keep(text: str) -> object:
        try:
            return read(text)
        except ValueError:
            return text

    return read_or_keep


def _micros(text: str) -> str:
    """Return a time as Python 3.10 reads it: six digits of a second, and an offset in place of Z."""
    whole, dot, fraction = text.removesuffix("Z").partition(".")
    zone = "+00:00" if text.endswith("Z") else ""
    return f"{whole}{dot}{f'{fraction:0<6}'[:6] if dot else ''}{zone}"
