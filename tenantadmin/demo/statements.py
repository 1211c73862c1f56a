"""The statements of the demo: SQL without literals, what fills its placeholders, and how it behaves."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from datetime import date, timedelta
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import msgspec
import orjson

if TYPE_CHECKING:
    from random import Random

_TABLE = re.compile(r"\b(?:FROM|JOIN|INTO|UPDATE|USING|TABLE)\s+([a-z_]+\.[a-z_]+)(?=[\s,;()]|$)")
_NON_DETERMINISTIC = re.compile(r"\b(?:CURRENT_TIMESTAMP|CURRENT_DATE|RANDOM\(\)|NOW\(\))")
_DATA_CHANGES: Final = frozenset({"INSERT", "UPDATE", "DELETE", "MERGE", "COPY"})
_DEFINITIONS: Final = frozenset({"CREATE", "ALTER", "DROP"})


class Persona(StrEnum):
    """Who sends a statement; it decides when and in what bursts."""

    DASHBOARD = "dashboard"
    ANALYST = "analyst"
    APPLICATION = "application"
    LOADER = "loader"
    OPERATOR = "operator"


class OneOf(msgspec.Struct, frozen=True, array_like=True, tag="one_of", forbid_unknown_fields=True):
    """Filled from ``values``, the first ones most often."""

    values: Annotated[tuple[str | int, ...], msgspec.Meta(min_length=1)]

    def fill(self, rng: Random, _day: date) -> str | int:
        return self.values[int(rng.random() ** 1.7 * len(self.values))]


class Number(msgspec.Struct, frozen=True, array_like=True, tag="number", forbid_unknown_fields=True):
    """Filled with an integer from ``low`` to below ``high``, small ones most often."""

    low: int
    high: int

    def __post_init__(self) -> None:
        if self.low >= self.high:
            raise ValueError(f"there is no number from {self.low} to below {self.high}")

    def fill(self, rng: Random, _day: date) -> int:
        return self.low + int((self.high - self.low) * rng.random() ** 7)


class DaysAgo(msgspec.Struct, frozen=True, array_like=True, tag="days_ago", forbid_unknown_fields=True):
    """Filled with the date of a day so long before the request."""

    nearest: int
    farthest: int

    def __post_init__(self) -> None:
        if self.nearest > self.farthest:
            raise ValueError(f"there is no day from {self.nearest} to {self.farthest} days ago")

    def fill(self, rng: Random, day: date) -> str:
        return (day - timedelta(days=rng.randint(self.nearest, self.farthest))).isoformat()


class MonthStart(msgspec.Struct, frozen=True, array_like=True, tag="month_start", forbid_unknown_fields=True):
    """Filled with the first day of one of the last ``months`` months, this one most often."""

    months: Annotated[int, msgspec.Meta(ge=1)]

    def fill(self, rng: Random, day: date) -> str:
        count = day.year * 12 + day.month - 1 - int(rng.random() ** 2 * self.months)
        return date(count // 12, count % 12 + 1, 1).isoformat()


Slot: TypeAlias = OneOf | Number | DaysAgo | MonthStart


class Statement(msgspec.Struct, frozen=True, kw_only=True, dict=True, forbid_unknown_fields=True):
    """A statement, as a data file gives it: ``text`` has ``?`` for every literal and one slot for each.

    ``bound``: the values travel as parameters, not inside the text. ``ms`` is the warehouse's median time,
    ``size`` the result's bytes, ``weight`` how often it is chosen among those of its personas.
    """

    text: str = msgspec.field(name="sql")
    personas: tuple[Persona, ...]
    slots: tuple[Slot, ...] = ()
    bound: bool = False
    ms: Annotated[int, msgspec.Meta(ge=1)]
    size: Annotated[int, msgspec.Meta(ge=0)]
    weight: Annotated[float, msgspec.Meta(gt=0)] = 1.0

    def __post_init__(self) -> None:
        if not self.sql:
            raise ValueError("a statement has no text")
        if self.text.count("?") != len(self.slots):
            raise ValueError(f"{len(self.slots)} slots do not fill {self.sql!r}")

    @cached_property
    def sql(self) -> str:
        """The text as the log shows it, on one line."""
        return " ".join(self.text.split())

    @cached_property
    def kind(self) -> str:
        """``statementType``."""
        first = self.sql.split(None, 1)[0]
        return "SELECT" if first == "WITH" else first

    @cached_property
    def tables(self) -> tuple[str, ...]:
        """The tables it names, in order; all are written ``schema.table``, common table expressions bare."""
        return tuple(dict.fromkeys(_TABLE.findall(self.sql)))

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
        """``queryHash`` where no cache is asked: of the standardized text alone."""
        return hashlib.sha256(self.sql.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Call:
    """A statement with its values. ``cached_hash`` is ``queryHash`` where a cache is asked.

    ``scale`` is this call's share of the statement's usual size and time: the same call always costs alike.
    """

    statement: Statement
    parameters: str | None
    text_bytes: int
    cached_hash: str
    scale: float


class Calls:
    """Makes calls, each distinct one once."""

    def __init__(self) -> None:
        self._made: dict[tuple[int, tuple[str | int, ...]], Call] = {}

    def make(self, statement: Statement, *, rng: Random, day: date) -> Call:
        """Fill the slots of ``statement`` for a request on ``day``."""
        values = tuple(slot.fill(rng, day) for slot in statement.slots)
        key = (id(statement), values)
        call = self._made.get(key)
        if call is None:
            call = self._made[key] = _new_call(statement, values)
        return call


def _new_call(statement: Statement, values: tuple[str | int, ...]) -> Call:
    parameters = orjson.dumps(values).decode() if statement.bound and values else None
    text = statement.sql if statement.bound else _inline(statement.sql, values)
    digest = hashlib.sha256(f"{text}\x1f{parameters or ''}".encode())
    scale = 0.6 + 0.8 * digest.digest()[0] / 255
    return Call(statement, parameters, len(text.encode()), digest.hexdigest(), scale)


def _inline(sql: str, values: tuple[str | int, ...]) -> str:
    parts = iter(sql.split("?"))
    text = next(parts)
    for value, part in zip(values, parts, strict=True):
        text += (str(value) if isinstance(value, int) else f"'{value}'") + part
    return text
