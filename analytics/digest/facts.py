"""What a digest is made of: facts with their SQL, names, and texts that refer to both by id."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

#: ``{id}`` in a text.
PLACEHOLDER: Final = re.compile(r"\{([a-z][a-z0-9-]*)\}")


class Unit(StrEnum):
    """What the value of a fact counts."""

    COUNT = "count"
    PERCENT = "percent"
    SECONDS = "s"
    MILLISECONDS = "ms"


class NameKind(StrEnum):
    """What a name refers to."""

    RULE = "rule"
    STATEMENT = "statement"
    REVISION = "revision"
    TIME = "time"
    RECOMMENDATION = "recommendation"


@dataclass(frozen=True, slots=True)
class FactQuery:
    """A fact before it is read: ``sql`` over ``proxy_logs`` has one row with one value."""

    id: str
    unit: Unit
    sql: str


@dataclass(frozen=True, slots=True)
class Fact:
    """A number that its SQL gave."""

    id: str
    value: int | float | None
    unit: Unit
    sql: str

    def as_json(self) -> dict[str, Any]:
        return {"id": self.id, "value": self.value, "unit": self.unit.value, "sql": self.sql}


@dataclass(frozen=True, slots=True)
class Name:
    """Something that a text refers to and that is not measured, such as a rule or a time."""

    id: str
    kind: NameKind
    value: str
    href: str | None = None

    def as_json(self) -> dict[str, Any]:
        return {"id": self.id, "kind": self.kind.value, "value": self.value, "href": self.href}


@dataclass(frozen=True, slots=True)
class Section:
    """One part of a digest: its sentences have ``{id}`` where a fact or a name belongs, and no digits."""

    id: str
    heading: str
    sentences: Sequence[str]
    facts: Sequence[Fact] = ()
    names: Sequence[Name] = field(default=())

    @property
    def text(self) -> str:
        return "\n".join(self.sentences)


def placeholders(text: str) -> list[str]:
    """Return the ids in a text, in order."""
    return PLACEHOLDER.findall(text)


def fill(text: str, values: Mapping[str, str]) -> str:
    """Return a text with values in place of its ids. Values are not searched for ids."""
    return PLACEHOLDER.sub(lambda match: values[match.group(1)], text)


def show_fact(fact: Mapping[str, Any]) -> str:
    """Return a fact (as JSON) for people to read. No digit of it is lost."""
    value = fact["value"]
    if value is None:
        return "no data"
    text = f"{int(value):,}" if value == int(value) else f"{value:,}"
    match fact["unit"]:
        case Unit.PERCENT:
            return f"{text}%"
        case Unit.COUNT:
            return text
        case unit:
            return f"{text} {unit}"


def show_values(
    document: Mapping[str, Any], *, show_name: Callable[[Mapping[str, Any]], str]
) -> dict[str, str]:
    """Return the readable values of all facts and names of a digest's document, by id."""
    facts = {fact["id"]: show_fact(fact) for fact in document["facts"]}
    return facts | {name["id"]: show_name(name) for name in document["names"]}
