"""Changes during a period: writes of the rules, markers made by hand, and open recommendations."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeVar

from analytics.digest.facts import Name, NameKind, name_time
from logs.layout import HOUR_MS
from tenantadmin.lib.core.formats import exact_minute
from tenantadmin.lib.core.timestamps import from_epoch_ms

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import date


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

    def describe(self, prefix: str) -> tuple[str, list[Name]]:
        """Return what it did to which rules, as ``it added {…}`` or nothing, and their names.

        It uses the verbs of the history in the same order (`Revision.text`).
        """
        parts = []
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
                listed = ", ".join(f"{{{name.id}}}" for name in own)
                parts.append(f"{verb} {listed}" + (" and others" if len(rule_ids) > len(own) else ""))
            names += own
        return (f"it {', '.join(parts)}" if parts else ""), names


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
) -> tuple[list[str], list[Name]]:
    """Return the sentence about a change that coincides with a move of a rule's hit rate, and its names.

    It names the newest change in the hour of ``start`` (epoch ms) or up to six hours before it that can
    explain the move. A marker, and a write of other rules, can only explain a fall. Without such a change,
    there is no sentence.

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
        marked = f"an invalidation marker made by hand at {{{name.id}}}"
        mechanism = "a marker ends all older results of its rule"
        return [f"Coincides with {marked}: {mechanism}."], [name]
    if write is None:
        return [], []
    name = write.as_name(f"{prefix}-write")
    if rule_id in write.added:
        mechanism = "it added this rule"
    elif rule_id in write.changed:
        mechanism = "it changed this rule"
    else:
        mechanism = "publishing rules empties the cache"
    return [f"Coincides with the rules of {{{name.id}}}: {mechanism}."], [name]


def _fits(moment: int, start: int) -> bool:
    return start - COINCIDENCE_MS <= moment < start + HOUR_MS


def _newest(changes: list[_Change]) -> _Change | None:
    return max(changes, key=lambda change: change.at, default=None)


def find_last_write(changes: Changes, *, start: int) -> RulesWrite | None:
    """Return the newest write of the rules in the hour of ``start`` (epoch ms) or six hours before it."""
    return _newest([write for write in changes.writes if _fits(write.at, start)])
