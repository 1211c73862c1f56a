"""Say which days a replay covers, and why it left days out."""

from __future__ import annotations

from collections import defaultdict
from datetime import date
from itertools import groupby
from typing import TYPE_CHECKING, Any

from rules.conditions.keys import CONDITION_KEYS
from tenantadmin.lib.core.formats import count, day_in_words, days_between

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


def say_days(window: Mapping[str, Any]) -> str:
    """Say the counted days of a `ReplayWindow`: ``6 of the 7 days 20 to 26 November``."""
    days, all_days = count_days(window)
    said = _name(date.fromisoformat(window["from"]), date.fromisoformat(window["to"]))
    return said if days == all_days else f"{days} of the {all_days} days {said}"


def count_days(window: Mapping[str, Any]) -> tuple[int, int]:
    """Return how many days of a `ReplayWindow` are counted, and how many it has."""
    first, last = date.fromisoformat(window["from"]), date.fromisoformat(window["to"])
    left_out = [day for day in window.get("daysLeftOut") or () if day >= window["from"]]
    days = (last - first).days + 1
    return days - len(left_out), days


def say_left_out(window: Mapping[str, Any]) -> str:
    """Name the days that were left out, and say why."""
    empty = window.get("emptyColumns")
    by_reason: dict[str, list[str]] = defaultdict(list)
    for day in sorted(window["daysLeftOut"]):
        by_reason[_say_reason(None if empty is None else empty.get(day, ()))].append(day)
    said = [
        f"{_name_days(map(date.fromisoformat, found))} {'were' if found[1:] else 'was'} left out: {reason}."
        for reason, found in by_reason.items()
    ]
    days, all_days = count_days(window)
    if days == 0:
        said.append("So there are no figures.")
    elif days < all_days:
        said.append(f"The figures are of the other {count(days, 'day') if days > 1 else 'day'}.")
    return " ".join(said)


def _say_reason(columns: Sequence[str] | None) -> str:
    """Say why days were left out. Replays of earlier releases do not name the columns: None."""
    if columns is None:
        return "the log has no usable entries"
    if not columns:
        return "there is no log, or it is not built yet"
    *others, last = (CONDITION_KEYS[name].said for name in columns)
    asked = f"{', '.join(others)} and {last}" if others else last
    return f"no log entry shows {asked}, and the rules ask for that"


def _name_days(days: Iterable[date]) -> str:
    """Name sorted days, days in a row together."""
    named = []
    for _, run in groupby(enumerate(days), lambda it: it[1].toordinal() - it[0]):
        first, *others = [day for _, day in run]
        named.append(_name(first, others[-1] if others else first))
    return "; ".join(named)


def _name(first: date, last: date) -> str:
    return day_in_words(first, first) if first == last else days_between(first, last, today=first)
