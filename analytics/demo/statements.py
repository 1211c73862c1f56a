"""The statements of the demo: SQL with placeholders, their values, and the cost."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from datetime import date, timedelta
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import msgspec

from analytics.demo.gateway import hash_query

if TYPE_CHECKING:
    from random import Random

_TABLE = re.compile(r"\b(?:FROM|JOIN|INTO|UPDATE|USING|TABLE)\s+(\w+\.\w+)(?=[\s,;()]|$)")
_NON_DETERMINISTIC = re.compile(r"\b(?:CURRENT_TIMESTAMP|CURRENT_DATE|RANDOM\(\)|NOW\(\))")
_DATA_CHANGES: Final = frozenset({"INSERT", "UPDATE", "DELETE", "MERGE", "COPY"})
_DEFINITIONS: Final = frozenset({"CREATE", "ALTER", "DROP"})


class Persona(StrEnum):
    """The kind of a consumer. It decides the times and the bursts of its statements."""

    DASHBOARD = "dashboard"
    ANALYST = "analyst"
    APPLICATION = "application"
    LOADER = "loader"
    OPERATOR = "operator"


class OneOf(msgspec.Struct, frozen=True, array_like=True, tag="one_of", forbid_unknown_fields=True):
    """A slot that is filled with one of ``values``; earlier values are more frequent."""

    values: Annotated[tuple[str | int, ...], msgspec.Meta(min_length=1)]

    def fill(self, rng: Random, _day: date) -> str | int:
        return self.values[int(rng.random() ** 1.7 * len(self.values))]


class Number(msgspec.Struct, frozen=True, array_like=True, tag="number", forbid_unknown_fields=True):
    """A slot that is filled with an integer from ``low`` to below ``high``; small ones are more frequent."""

    low: int
    high: int

    def fill(self, rng: Random, _day: date) -> int:
        return self.low + int((self.high - self.low) * rng.random() ** 7)


class DaysAgo(msgspec.Struct, frozen=True, array_like=True, tag="days_ago", forbid_unknown_fields=True):
    """A slot that is filled with a date from ``nearest`` to ``farthest`` days before the request."""

    nearest: int
    farthest: int

    def fill(self, rng: Random, day: date) -> str:
        return (day - timedelta(days=rng.randint(self.nearest, self.farthest))).isoformat()


class MonthStart(msgspec.Struct, frozen=True, array_like=True, tag="month_start", forbid_unknown_fields=True):
    """A slot that is filled with the first day of one of the last ``months`` months, mostly recent ones."""

    months: Annotated[int, msgspec.Meta(ge=1)]

    def fill(self, rng: Random, day: date) -> str:
        count = day.year * 12 + day.month - 1 - int(rng.random() ** 2 * self.months)
        return date(count // 12, count % 12 + 1, 1).isoformat()


Slot: TypeAlias = OneOf | Number | DaysAgo | MonthStart


class Statement(msgspec.Struct, frozen=True, kw_only=True, dict=True, forbid_unknown_fields=True):
    """A statement in a data file.

    Attributes:
        text: the SQL, with ``?`` for every literal.
        personas: the kinds of consumers that send it.
        slots: a slot for each ``?``, in order.
        bound: the values are sent as parameters, not inside the text.
        ms: the median time in the warehouse.
        size: the size of the result in bytes.
        weight: its frequency relative to other statements of its personas.
    """

    text: str = msgspec.field(name="sql")
    personas: tuple[Persona, ...]
    slots: tuple[Slot, ...] = ()
    bound: bool = False
    ms: Annotated[int, msgspec.Meta(ge=1)]
    size: Annotated[int, msgspec.Meta(ge=0)]
    weight: Annotated[float, msgspec.Meta(gt=0)] = 1.0

    def __post_init__(self) -> None:
        if self.text.count("?") != len(self.slots):
            raise ValueError(f"{self.sql!r} needs a slot for each '?', but has {len(self.slots)}")

    @cached_property
    def sql(self) -> str:
        """The text on one line, as in the log."""
        return " ".join(self.text.split())

    @cached_property
    def kind(self) -> str:
        """``statementType``."""
        first = self.sql.split(None, 1)[0]
        return "SELECT" if first == "WITH" else first

    @cached_property
    def tables(self) -> tuple[str, ...]:
        """The tables in the text, in order. Only tables have a schema; common table expressions have none."""
        return tuple(dict.fromkeys(_TABLE.findall(self.sql)))

    @cached_property
    def tables_json(self) -> str | None:
        """``tables``."""
        return msgspec.json.encode(self.tables).decode() if self.tables else None

    @property
    def is_data_change(self) -> bool:
        return self.kind in _DATA_CHANGES

    @property
    def is_ddl(self) -> bool:
        return self.kind in _DEFINITIONS

    @property
    def is_read_only(self) -> bool:
        return not (self.is_data_change or self.is_ddl)

    @cached_property
    def is_non_deterministic(self) -> bool:
        return _NON_DETERMINISTIC.search(self.sql) is not None

    @cached_property
    def plain_hash(self) -> str:
        """``queryHash`` of a request that does not use the cache: a hash of the standardized text alone."""
        return hashlib.sha256(self.sql.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Call:
    """A statement with its values.

    ``cached_hash`` is ``queryHash`` of a request that uses the cache. ``scale`` multiplies the statement's
    size and time, so that equal calls have equal costs, and other values have other costs.
    """

    statement: Statement
    parameters: str | None
    text_bytes: int
    cached_hash: str
    scale: float


def make_call(statement: Statement, *, rng: Random, day: date) -> Call:
    """Fill the slots of ``statement`` for a request on ``day``."""
    values = tuple(slot.fill(rng, day) for slot in statement.slots)
    parameters = msgspec.json.encode(values).decode() if statement.bound and values else None
    text = statement.sql if statement.bound else _inline(statement.sql, values)
    cached_hash = hash_query(text, parameters or "")
    scale = 0.6 + 0.8 * int(cached_hash[:2], 16) / 255
    return Call(statement, parameters, len(text.encode()), cached_hash, scale)


def _inline(sql: str, values: tuple[str | int, ...]) -> str:
    parts = iter(sql.split("?"))
    text = next(parts)
    for value, part in zip(values, parts, strict=True):
        text += (str(value) if isinstance(value, int) else f"'{value}'") + part
    return text
