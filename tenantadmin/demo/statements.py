"""The statements of the demo: SQL without literals, what fills its placeholders, and how it behaves."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from datetime import date, timedelta
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Final, TypeAlias

import orjson

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    Slot: TypeAlias = Callable[[Random, date], str | int]

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


def one_of(*values: str | int) -> Slot:
    """A slot filled from ``values``, the first ones most often."""
    return lambda rng, _day: values[int(rng.random() ** 1.7 * len(values))]


def number(low: int, high: int) -> Slot:
    """A slot filled with an integer from ``low`` to below ``high``, small ones most often."""
    return lambda rng, _day: low + int((high - low) * rng.random() ** 7)


def days_ago(nearest: int, farthest: int) -> Slot:
    """A slot filled with the date of a day so long before the request."""
    return lambda rng, day: (day - timedelta(days=rng.randint(nearest, farthest))).isoformat()


def month_start(months: int) -> Slot:
    """A slot filled with the first day of one of the last ``months`` months, this one most often."""

    def fill(rng: Random, day: date) -> str:
        count = day.year * 12 + day.month - 1 - int(rng.random() ** 2 * months)
        return date(count // 12, count % 12 + 1, 1).isoformat()

    return fill


@dataclass(frozen=True)
class Statement:
    """A statement as the log shows it: `sql` with ``?`` for every literal, one slot for each.

    ``bound``: the values travel as parameters, not inside the text. ``ms`` is the warehouse's median time,
    ``size`` the result's bytes, ``weight`` how often it is chosen among those of its personas.
    """

    sql: str
    personas: tuple[Persona, ...]
    ms: int
    size: int
    slots: tuple[Slot, ...] = field(default=(), compare=False, repr=False)
    bound: bool = False
    weight: float = 1.0

    def __post_init__(self) -> None:
        if self.sql.count("?") != len(self.slots):
            raise ValueError(f"{len(self.slots)} slots do not fill {self.sql!r}")

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
        values = tuple(slot(rng, day) for slot in statement.slots)
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
