"""The digest of a period in words. Sentences have ``{id}`` in place of facts and names, and no digits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
from msgspec import Meta

from analytics.watch.facts import FELL, LEAKS, Changes, DigestPeriod, Fact, Line
from analytics.watch.sections import DigestHead, read_digest
from tenantadmin.lib.core.structs import JsonStruct

if TYPE_CHECKING:
    from analytics.watch.reading import DigestLog


class SectionText(JsonStruct):
    id: str
    heading: str
    text: Annotated[str, Meta(description="Sentences, one per line, with `{id}` for each fact and name.")]


class StoredDigest(DigestHead):
    """A digest as it is stored. The texts of its sections are templates."""

    facts: list[Fact]
    sections: list[SectionText]
    #: See `analytics.watch.sections.find_leaking`.
    leaking: list[dict[str, Any]] = []  # noqa: RUF012 - msgspec copies it


def make_document(log: DigestLog, period: DigestPeriod, changes: Changes) -> StoredDigest:
    """Return the digest of a period that has entries."""
    found = read_digest(log, period, changes)
    sections = [
        SectionText(id=section.id, heading=_HEADINGS[section.id], text="\n".join(map(render, section.lines)))
        for section in found.sections
    ]
    head = msgspec.structs.asdict(found.head)
    return StoredDigest(**head, facts=list(found.facts), sections=sections, leaking=found.leaking)


_HEADINGS: Final = {
    FELL: "The hit rate fell",
    "errors": "Bursts of errors",
    LEAKS: "Leaks",
    "stale": "Stale risk",
    "moved": "Hit rates that moved",
    "new-statements": "New heavy statements",
    "publishes": "Published rules",
    "totals": "Totals",
    "savings": "Saved on the bill",
    "recommendations": "Open recommendations",
}
_TOTALS: Final = {
    "requests": "Requests: {requests}",
    "hit-rate": "Hits: {hit-rate} of them",
    "warehouse": "Warehouse time: {warehouse}",
    "response": "Mean response time: {response}",
    "errors": "Failures: {errors}",
}
_EFFECTS: Final = {
    "added": "it added this rule",
    "changed": "it changed this rule",
    "emptied": "publishing rules empties the cache",
}
_REASONS: Final = {"certain": "depends on the user", "likely": "may depend on the user"}


def render(line: Line) -> str:
    """Return the sentence of a line."""
    return _SENTENCES[line.kind](**line.values)


def _moved(*, prefix: str, has_risen: bool) -> str:
    change = f"{'rose' if has_risen else 'fell'} from {{{prefix}-before}} to {{{prefix}-rate}}"
    return f"The hit rate of {{{prefix}-rule}} {change}, over {{{prefix}-requests}} requests."


def _describe_changes(changes: Sequence[tuple[str, Sequence[str], bool]]) -> str:
    """Return what a write did to which rules, as ``it added {…}``; empty if to none."""
    parts = [
        f"{verb} {', '.join(f'{{{name}}}' for name in names)}{' and others' if has_more else ''}"
        for verb, names, has_more in changes
    ]
    return f"it {', '.join(parts)}" if parts else ""


def _coincides(*, write: str, changes: Sequence[tuple[str, Sequence[str], bool]]) -> str:
    told = _describe_changes(changes)
    return f"Coincides with the rules of {{{write}}}{f': {told}' if told else ''}."


def _total(*, name: str, comparison: float | None) -> str:
    """``comparison`` is the difference from the median: 0 if it is usual, None if there is no median."""
    if comparison is None:
        return f"{_TOTALS[name]}."
    usual = f"{'more' if comparison > 0 else 'less'} than usual" if comparison else "within what is usual"
    return f"{_TOTALS[name]}, {usual} ({{{name}-median}})."


def _quiet(*, kind: str, has_rate: bool) -> str:
    rate = ", hits: {hit-rate}" if has_rate else ""
    return f"A quiet {kind} without anything unusual; requests: {{requests}}{rate}."


def _leak(*, prefix: str, grade: str, has_rule: bool, numbers: Sequence[float | None]) -> str:
    results, times, users = (
        noun if number == 1 else f"{noun}s"
        for number, noun in zip(numbers, ("cached result", "time", "user"), strict=True)
    )
    verb = "was" if numbers[0] == 1 else "were"
    rule = f"by {{{prefix}-rule}}" if has_rule else "without a rule"
    return (
        f"Several users shared results of a statement that {_REASONS[grade]}, {rule}: {{{prefix}-keys}} "
        f"{results} {verb} served to {{{prefix}-users}} {users}, {{{prefix}-served}} {times}. "
        f"{{{prefix}-statement}}"
    )


def _published(
    *, prefix: str, changes: Sequence[tuple[str, Sequence[str], bool]], misses: float | None
) -> str:
    told = _describe_changes(changes)
    effect = f"{told}, and emptied the cache" if told else "it emptied the cache"
    results = "result that was" if misses == 1 else "results that were"
    again = (
        f"That cost {{{prefix}-time}} of warehouse time, because {{{prefix}-misses}} {results} still valid "
        "had to be made again."
        if misses
        else "That cost nothing: no result that was still valid had to be made again."
    )
    return f"Rules were published with {{{prefix}-write}}: {effect}. {again}"


def _bill(*, is_cost: bool) -> str:
    amount = "{saved-money} {currency}, {saved-share} of the bill without the cache"
    return f"The cache cost {amount}." if is_cost else f"Saved on the bill: {amount}."


_SENTENCES: Final[Mapping[str, Callable[..., str]]] = {
    "fell": lambda: "The hit rate fell to {hit-rate}; usual: {hit-rate-median}.",
    "coincides-with-rules": _coincides,
    "coincides-with-marker": lambda marker: (
        f"Coincides with an invalidation marker made by hand at {{{marker}}}: a marker ends all older "
        "results of its rule."
    ),
    "coincides-with-write": lambda write, effect: (
        f"Coincides with the rules of {{{write}}}: {_EFFECTS[effect]}."
    ),
    "moved": _moved,
    "last-changed": lambda write: f"Before, this rule was last changed with {{{write}}}.",
    "total": _total,
    "nothing-earlier": lambda is_week: (
        f"There is no earlier {'week' if is_week else 'day of the same name'} to compare with."
    ),
    "quiet": _quiet,
    "burst": lambda prefix: (
        f"Failed between {{{prefix}-start}} and {{{prefix}-end}}: {{{prefix}-errors}}, beside "
        f"{{{prefix}-requests}} requests."
    ),
    "burst-after-write": lambda write: (
        f"Coincides with the rules of {{{write}}}: afterwards, requests that the cache answered before go to "
        "the warehouse."
    ),
    "usual-errors": lambda: "Usual in an hour of the week before: {errors-usual}.",
    "new-statement": lambda prefix: (
        f"A statement that is new in the log took {{{prefix}-time}} of the warehouse, {{{prefix}-share}} of "
        f"its time; requests: {{{prefix}-runs}}. {{{prefix}-statement}}"
    ),
    "leak": _leak,
    "stale": lambda prefix: (
        f"Hits of {{{prefix}-rule}} that were older than a change of a table that they read: "
        f"{{{prefix}-risk}} of {{{prefix}-hits}}."
    ),
    "stale-without-age": lambda: "Hits without an age in the log are not counted.",
    "stale-elsewhere": lambda: (
        "A write that does not pass the Gateway is not in the log, so the true risk may be higher."
    ),
    "published": _published,
    "published-more": lambda: "Rules were published more often.",
    "bill": _bill,
    "awake": lambda is_more: (
        f"The warehouse was awake for {{awake}}, {{awake-spared}} {'more' if is_more else 'less'} than "
        "without the cache."
    ),
    "would-help": lambda recommendation: f"It would help: {{{recommendation}}}.",
    "more-recommendations": lambda: "There are more open recommendations.",
}
