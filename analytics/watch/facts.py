"""The parts of a digest: periods, facts with their SQL, names, and the changes that texts refer to."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum
from typing import Annotated, Any, Final, Literal, TypeAlias, TypeVar

from msgspec import Meta

from logs.layout import HOUR_MS
from tenantadmin.lib.core import formats
from tenantadmin.lib.core.formats import exact_minute
from tenantadmin.lib.core.structs import JsonStruct
from tenantadmin.lib.core.timestamps import days_before, from_epoch_ms

DigestKind: TypeAlias = Literal["day", "week"]

#: A day is compared with this many same weekdays before it, a week with this many weeks before it.
EARLIER: Final = 4
#: A digest reads at most this many days before its first day.
LOOK_BACK_DAYS: Final = 7 * EARLIER
_WEEK_DAYS: Final = 7


@dataclass(frozen=True, slots=True)
class DigestPeriod:
    """A day, or a week from Monday to Sunday."""

    first: date
    last: date

    @classmethod
    def of_day(cls, day: date) -> DigestPeriod:
        return cls(day, day)

    @classmethod
    def of_week(cls, year: int, week: int) -> DigestPeriod:
        """Return an ISO week. The last one of the calendar ends with the calendar.

        Raises:
            ValueError: the year has no such week.
        """
        first = date.fromisocalendar(year, week, 1)
        return cls(first, date.fromordinal(min(first.toordinal() + _WEEK_DAYS - 1, date.max.toordinal())))

    @classmethod
    def with_day(cls, day: date) -> DigestPeriod:
        """Return the week of ``day``."""
        return cls.of_week(*day.isocalendar()[:2])

    @classmethod
    def named(cls, name: str) -> DigestPeriod:
        """Return the period with a name such as ``2026-03-01`` or ``2026-W09``.

        Raises:
            ValueError: there is no such period.
        """
        year, is_week, week = name.partition("-W")
        if is_week:
            if len(year) != len("2026") or len(week) != len("09"):
                raise ValueError(f"{name!r} is not a week; write it like 2026-W09")
            return cls.of_week(int(year), int(week))
        return cls.of_day(date.fromisoformat(name))

    @property
    def is_week(self) -> bool:
        return self.first != self.last

    @property
    def kind(self) -> DigestKind:
        return "week" if self.is_week else "day"

    @property
    def name(self) -> str:
        if not self.is_week:
            return self.first.isoformat()
        year, week, _ = self.first.isocalendar()
        return f"{year:04}-W{week:02}"

    @property
    def sql(self) -> str:
        """The SQL condition for entries of the period."""
        return f"day BETWEEN '{self.first}' AND '{self.last}'" if self.is_week else f"day = '{self.first}'"

    @property
    def earlier_sql(self) -> str:
        """The SQL condition for entries of the earlier periods that this one is compared with."""
        if self.is_week:
            return self.before_sql(LOOK_BACK_DAYS)
        days = [days_before(self.first, _WEEK_DAYS * number) for number in range(1, EARLIER + 1)]
        return "day IN (" + ", ".join(f"'{day}'" for day in days) + ")"

    @property
    def grouping_sql(self) -> str:
        """The SQL expression that groups the earlier days into periods of the same kind."""
        return "date_trunc('week', day::DATE)" if self.is_week else "day"

    def before_sql(self, days: int) -> str:
        """Return the SQL condition for entries of so many days before the first day."""
        return f"day BETWEEN '{days_before(self.first, days)}' AND '{days_before(self.first, 1)}'"


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
class Line:
    """One thing that a section tells: its kind, and the values that its sentence depends on.

    They are ids of facts and names, or their prefix, and what decides between words.
    """

    kind: str
    values: Mapping[str, Any]


def line(kind: str, /, **values: Any) -> Line:
    """Return a line. `analytics.words.sections` has the sentence of each kind."""
    return Line(kind, values)


@dataclass(slots=True)
class Section:
    """A part of a digest, with the facts and names that its lines refer to."""

    id: str
    lines: list[Line] = field(default_factory=list)
    facts: list[Fact] = field(default_factory=list)
    names: list[Name] = field(default_factory=list)

    def say(self, kind: str, /, **values: Any) -> None:
        """Add a line."""
        self.lines.append(line(kind, **values))

    def name(self, name_id: str, kind: NameKind, value: str, *, href: str | None = None) -> None:
        """Add a name."""
        self.names.append(Name(id=name_id, kind=kind, value=value, href=href))


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


#: A finding may coincide with a change that is at most this much older, in milliseconds.
COINCIDENCE_MS: Final = 6 * HOUR_MS
#: The most rules of a write that a sentence names.
_MOST_RULES: Final = 3


@dataclass(frozen=True, slots=True)
class RulesWrite:
    """A write of the ruleset: its time (epoch ms), and the ids of added, removed and changed rules.

    With ``has_more``, it concerns other rules too, which are not known.
    """

    seq: int
    at: int
    href: str
    added: frozenset[str] = frozenset()
    removed: frozenset[str] = frozenset()
    changed: frozenset[str] = frozenset()
    has_more: bool = False
    #: The names of these rules by id, as far as they are known.
    labels: Mapping[str, str | None] = field(default_factory=dict, compare=False)

    @property
    def day(self) -> date:
        return from_epoch_ms(self.at).date()

    def touches(self, rule_id: str) -> bool:
        """Return True if it may have added, removed or changed the rule."""
        return self.has_more or rule_id in self.added | self.removed | self.changed

    def as_name(self, name_id: str) -> Name:
        text = f"revision {self.seq} ({exact_minute(from_epoch_ms(self.at))})"
        return Name(id=name_id, kind=NameKind.REVISION, value=text, href=self.href)

    def name_rules(self, prefix: str) -> tuple[list[tuple[str, list[str], bool]], list[Name]]:
        """Return what it did to which rules, and their names.

        For each verb of the history, in its order (`Revision.text`): the ids of names, and whether there are
        other rules too.
        """
        parts: list[tuple[str, list[str], bool]] = []
        names: list[Name] = []
        for verb in ("added", "removed", "changed"):
            rule_ids: frozenset[str] = getattr(self, verb)
            shown = sorted(rule_ids)[:_MOST_RULES]
            own = [
                Name(
                    id=f"{prefix}-{verb}-{number}",
                    kind=NameKind.RULE,
                    value=rule_id,
                    href=None,
                    label=self.labels.get(rule_id),
                )
                for number, rule_id in enumerate(shown, start=1)
            ]
            if own:
                parts.append((verb, [name.id for name in own], len(rule_ids) > len(own)))
            names += own
        return parts, names


@dataclass(frozen=True, slots=True)
class HandMarker:
    """An invalidation marker that a person made, at a time (epoch ms)."""

    rule_id: str
    at: int


@dataclass(frozen=True, slots=True)
class OpenRecommendation:
    """An undecided recommendation."""

    title: str
    href: str


@dataclass(frozen=True, slots=True)
class Changes:
    """The changes of a period, oldest first. They begin at least `COINCIDENCE_MS` before it.

    ``earlier`` are the writes of the days that the period is compared with. ``recommendations`` are the open
    ones, the most useful first.
    """

    writes: Sequence[RulesWrite] = ()
    earlier: Sequence[RulesWrite] = ()
    markers: Sequence[HandMarker] = ()
    recommendations: Sequence[OpenRecommendation] = ()


_Change = TypeVar("_Change", RulesWrite, HandMarker)


def find_coincidence(
    changes: Changes, *, rule_id: str, has_risen: bool, start: int, prefix: str
) -> tuple[list[Line], list[Name]]:
    """Return the line about a change that coincides with a move of a rule's hit rate, and its names.

    It names the newest change in the hour of ``start`` (epoch ms) or up to six hours before it that can
    explain the move. A marker, and a write of other rules, can only explain a fall. Without such a change,
    there is no line.

    Args:
        prefix: the beginning of the ids of the names.
    """
    marker = _newest(
        [
            change
            for change in changes.markers
            if change.rule_id == rule_id and not has_risen and _fits(change.at, start)
        ]
    )
    write = _newest(
        [
            change
            for change in changes.writes
            if (rule_id in change.added | change.changed or not has_risen) and _fits(change.at, start)
        ]
    )
    if marker is not None and (write is None or marker.at > write.at):
        name = name_time(f"{prefix}-marker", marker.at)
        return [line("coincides-with-marker", marker=name.id)], [name]
    if write is None:
        return [], []
    name = write.as_name(f"{prefix}-write")
    effect = "added" if rule_id in write.added else "changed" if rule_id in write.changed else "emptied"
    return [line("coincides-with-write", write=name.id, effect=effect)], [name]


def _fits(moment: int, start: int) -> bool:
    return start - COINCIDENCE_MS <= moment < start + HOUR_MS


def _newest(changes: list[_Change]) -> _Change | None:
    return max(changes, key=lambda change: change.at, default=None)


def find_last_write(changes: Changes, *, start: int) -> RulesWrite | None:
    """Return the newest write of the rules in the hour of ``start`` (epoch ms) or six hours before it."""
    return _newest([write for write in changes.writes if _fits(write.at, start)])
