"""Say the counts of each rule and their change: REST, the dashboard and the staff pages show the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

from msgspec import Meta

from analytics.replay.changes import change_of, change_of_all, pair_rules
from analytics.replay.figures import say_change
from analytics.replay.judgement import bound_misses, count_not_cached, count_others, count_requests
from tenantadmin.lib.core import formats
from tenantadmin.lib.core.structs import JsonStruct

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from analytics.replay.changes import Measure


class ReplayCount(JsonStruct):
    """A count under the replayed rules, for people to read."""

    name: str
    text: Annotated[str, Meta(description="`5,601`, `≈ 5,601`, `54 to 63`.")]
    note: Annotated[
        str | None,
        Meta(
            description="How the rules change it, in the words of `figures`; else its bounds, if it has any."
        ),
    ] = None


class ReplayRow(JsonStruct):
    """The counts of one rule, or of all."""

    rule_id: Annotated[str | None, Meta(description="Null: requests without a rule, or all.")]
    name: Annotated[str | None, Meta(description="At the time of the replay, if it is known; or `All`.")]
    is_changed: Annotated[bool, Meta(description="True if a count changes.")]
    counts: list[ReplayCount]


def _exactly(count: Callable[[Mapping[str, Any]], int]) -> Measure:
    def measure(counts: Mapping[str, Any]) -> dict[str, int]:
        return dict.fromkeys(("low", "likely", "high"), count(counts))

    return measure


#: Each count: its name, how it is found and shown, and the word for less of it.
_COUNTS: Final[tuple[tuple[str, Measure, Callable[[Any], str], str], ...]] = (
    ("Requests", _exactly(count_requests), formats.number, "fewer"),
    ("Hits", lambda counts: counts["hits"], formats.number, "fewer"),
    ("Misses", bound_misses, formats.number, "fewer"),
    ("Not cached", _exactly(count_not_cached), formats.number, "fewer"),
    ("Waited, failed or refused", _exactly(count_others), formats.number, "fewer"),
    ("Warehouse time saved", lambda counts: counts["savedMs"], formats.duration, "less"),
    ("Hits at risk of being stale", lambda counts: counts["risk"], formats.number, "fewer"),
)


def rows_of_replay(result: Mapping[str, Any], names: Mapping[str, str]) -> list[ReplayRow]:
    """Return all counts together, then the counts of each rule; nothing if the replay has no request.

    Requests are hits, misses and what is not cached; with what waited, failed or was refused, they are the
    same log entries before and after.
    """
    if not result["total"]["requests"]:
        return []
    pairs = pair_rules(result)

    def row(rule_id: str | None, name: str | None, after: Mapping[str, Any], change: Any) -> ReplayRow:
        counts, is_changed = [], False
        for title, measure, show, less in _COUNTS:
            bounds, by = measure(after), change(measure)
            text, _, note = formats.between(bounds, show).partition(" (")
            if by["low"] or by["high"]:
                is_changed = True
                said, limits = say_change(by, show, less=less)
                note = f"{said}; {limits}" if limits else said
            counts.append(ReplayCount(name=title, text=text, note=note.removesuffix(")") or None))
        return ReplayRow(rule_id=rule_id, name=name, is_changed=is_changed, counts=counts)

    return [
        row(
            None, "All", result["total"], lambda measure: change_of_all(measure, result, list(pairs.values()))
        ),
        *(
            row(
                rule_id,
                names.get(rule_id or ""),
                pair[0],
                lambda measure, pair=pair: change_of(measure, pair),
            )
            for rule_id, pair in pairs.items()
        ),
    ]
