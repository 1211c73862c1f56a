"""The parts of a digest: facts with their SQL, names, and texts that refer to both by id."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Final

from msgspec import Meta

from tenantadmin.lib.core import formats
from tenantadmin.lib.core.structs import JsonStruct
from tenantadmin.lib.core.timestamps import from_epoch_ms

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

#: The section of a hit rate that fell. The verdict tells it too.
FELL: Final = "fell"
LEAKS: Final = "leaks"
#: A hit rate fell if it is this many points below the usual one, with so many requests now or usually.
FALL_POINTS: Final = 5.0
FALL_REQUESTS: Final = 50
_REVISION: Final = re.compile(r"revision (\d+) ")
#: An ``{id}`` in a text.
PLACEHOLDER: Final = re.compile(r"\{([a-z][a-z0-9-]*)\}")


class Unit(StrEnum):
    """The unit of a fact's value."""

    COUNT = "count"
    PERCENT = "percent"
    SECONDS = "s"
    MILLISECONDS = "ms"
    HOURS = "h"
    MONEY = "money"


_MILLISECONDS: Final[Mapping[str, int]] = {Unit.SECONDS: 1000, Unit.MILLISECONDS: 1}


def percent_sql(part: str, whole: str, *, digits: int = 1) -> str:
    """Return SQL for the percentage that one count is of another, with this number of decimals.

    It is 100 only if ``part`` is all, 0 only if ``part`` is 0, and null if ``whole`` is 0.
    """
    least = 10**-digits
    return (
        f"CASE WHEN {whole} > 0 THEN least(if({part} < {whole}, {100 - least:.{digits}f}, 100.0), "
        f"greatest(if({part} > 0, {least:.{digits}f}, 0.0), round(100.0 * {part} / {whole}, {digits}))) END"
    )


class NameKind(StrEnum):
    """The kind of thing that a name refers to."""

    RULE = "rule"
    STATEMENT = "statement"
    REVISION = "revision"
    TIME = "time"
    RECOMMENDATION = "recommendation"
    CURRENCY = "currency"


def revision_of(name: Mapping[str, Any]) -> int | None:
    """Return the number of the revision that a digest's name (as JSON) refers to, or None."""
    match = _REVISION.match(name["value"]) if name["kind"] == NameKind.REVISION else None
    return int(match[1]) if match else None


@dataclass(frozen=True, slots=True)
class FactQuery:
    """A fact to read: ``sql`` over ``proxy_logs`` returns one row with one value."""

    id: str
    unit: Unit
    sql: str


class Fact(JsonStruct):
    """A number of a digest."""

    id: Annotated[str, Meta(description="Texts refer to it as `{id}`.")]
    value: float | None
    unit: Unit
    sql: Annotated[str, Meta(description="The statement over `proxy_logs` that gives the value.")]


class ShownFact(Fact):
    """A number of a digest."""

    component = "DigestFact"

    text: Annotated[str, Meta(description="The value with its unit, for people to read.")]


class Name(JsonStruct):
    """Something that a text refers to and that is not measured."""

    component = "DigestName"

    id: Annotated[str, Meta(description="Texts refer to it as `{id}`.")]
    kind: NameKind
    value: str
    href: Annotated[str | None, Meta(description="Where to read more.")]
    label: Annotated[
        str | None, Meta(description="The name of a rule, in the log of the period or in its write.")
    ] = None


def name_time(name_id: str, at: int) -> Name:
    """Return the name of a time (epoch ms), to the minute."""
    return Name(id=name_id, kind=NameKind.TIME, value=formats.exact_minute(from_epoch_ms(at)), href=None)


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a digest.

    Sentences have ``{id}`` in place of facts and names, and no digits.
    """

    id: str
    heading: str
    sentences: Sequence[str]
    facts: Sequence[Fact] = ()
    names: Sequence[Name] = field(default=())

    @property
    def text(self) -> str:
        return "\n".join(self.sentences)


def fill(text: str, values: Mapping[str, str]) -> str:
    """Replace the ids in a text by values. An ``{id}`` inside a value is not replaced."""
    return PLACEHOLDER.sub(lambda match: values[match.group(1)], text)


def show_facts(document: Mapping[str, Any]) -> dict[str, str]:
    """Return the readable form of all facts of a digest's document, by id.

    A time and its median are compared, so both have one unit.
    """
    facts = {fact["id"]: fact for fact in document["facts"]}
    texts = {fact_id: _show_fact(fact) for fact_id, fact in facts.items()}
    for fact_id, fact in facts.items():
        median = facts.get(f"{fact_id}-median")
        factor = _MILLISECONDS.get(fact["unit"])
        if factor and median and fact["value"] is not None and median["value"] is not None:
            both = formats.durations(fact["value"] * factor, median["value"] * factor)
            texts[fact_id], texts[median["id"]] = both
    return texts


def _show_fact(fact: Mapping[str, Any]) -> str:
    value = fact["value"]
    if value is None:
        return "no data"
    if factor := _MILLISECONDS.get(fact["unit"]):
        return formats.duration(value * factor)
    match fact["unit"]:
        case Unit.PERCENT:
            return formats.percent(value / 100)
        case Unit.COUNT:
            return formats.number(value)
        case Unit.HOURS:
            return f"{value:,} h"
        case _:
            # Most currencies have two digits; whole amounts need none.
            return formats.number(value) if value == int(value) else f"{value:,.2f}"


def has_fallen(values: Mapping[str, float | None]) -> bool:
    """Return True if the hit rate fell, from the values of the totals by id."""
    rate, usual = values.get("hit-rate"), values.get("hit-rate-median")
    requests = max(values.get("requests") or 0, values.get("requests-median") or 0)
    return (
        rate is not None and usual is not None and usual - rate >= FALL_POINTS and requests >= FALL_REQUESTS
    )


def show_values(
    document: Mapping[str, Any], *, show_name: Callable[[Mapping[str, Any]], str]
) -> dict[str, str]:
    """Return the readable form of all facts and names of a digest's document, by id."""
    return show_facts(document) | {name["id"]: show_name(name) for name in document["names"]}
