"""Recommendations in words: what each is good for, what all of them could save, and why there is none."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from analytics.advice.proposal import Kind
from analytics.replay.figures import NO_WAITING, figures_of, middle, time_of
from analytics.reports.savings_sql import MONTH_DAYS
from tenantadmin.lib.core import formats

if TYPE_CHECKING:
    from analytics.models import Recommendation
    from analytics.replay.figures import Figure


def describe_seconds(seconds: int) -> str:
    """Return a readable duration, such as "12 hours"."""
    for unit, size in (("day", 86_400), ("hour", 3600), ("minute", 60)):
        if seconds >= size and seconds % size == 0:
            count = seconds // size
            return f"{count} {unit}{'s' if count > 1 else ''}"
    return f"{seconds} seconds"


REASONS: Final = {
    "per-user": "The result depends on who asks. A cache would serve one user's result to another.",
    "non-deterministic": "The result of these statements changes by itself, or the log does not say.",
    "no-tables": "The log does not say which tables these statements read.",
    "not-read-only": "These statements change something, or the log does not say that they only read.",
    "changes-too-often": "The tables change so often that more than 1% of hits would be at risk, or that "
    "results would be invalidated before they are asked for again.",
    "too-little-to-save": "They are too rarely asked again, or too cheap, to be worth a rule.",
    "decided-not-to-cache": "A rule bypasses or denies these requests. Recommendations never undo that.",
}


def explain_nothing(report: Mapping[str, Any]) -> list[str]:
    """Say why a search found nothing: a sentence for each reason, that with the most warehouse time first.

    ``report`` is a `MiningReport`.
    """
    if report["basedOn"]["window"] is None:
        return ["The tenant has no logs."]
    reasons = sorted(report["notProposed"], key=lambda reason: -reason["warehouseMs"])
    if not reasons and "days-left-out" in report["caveats"]:
        return [
            "Days were left out: their log has nothing in a column that a search reads, such as isReadOnly."
        ]
    if not reasons and not report["rows"]["decidable"]:
        return ["No entry of these days has a statement, a time and a status, so rules decide nothing."]
    if not reasons:
        return ["Rules answer all requests of these days, or no request reached the warehouse."]
    return [
        f"{formats.count(reason['requests'], 'request')}, {formats.duration(reason['warehouseMs'])} of "
        f"warehouse time: {reason['why']}"
        for reason in reasons
    ]


#: A time below this share of the longest one is not shown beside it: a reader would look for what joins them.
_SHOWN: Final = 0.05
_PURPOSES: Final = {
    Kind.LEAK_FIX: "privacy",
    Kind.INVALIDATOR: "fresh results",
    Kind.SPLIT: "fresh results",
    Kind.SWR: NO_WAITING,
    Kind.BYPASS: "less stored",
    Kind.REMOVE: "simpler rules",
    Kind.LET_IT_SLEEP: "saves money",
    Kind.AUTO_SUSPEND: "saves money",
}


def purpose_of(kind: str) -> str:
    """Return what a recommendation of this kind is good for."""
    return _PURPOSES.get(Kind(kind), "saves time")


def name_saved_time(kind: str) -> str:
    """Return what the time is that a recommendation of this kind saves: of users, or of the warehouse."""
    return f"{time_of_kind(kind)} saved"


def time_of_kind(kind: str) -> str:
    """Return whose time a recommendation of this kind saves."""
    return time_of(purpose_of(kind))


def figures_of_kind(gain: Mapping[str, Any], kind: str) -> list[Figure]:
    """Return the figures of what a recommendation of this kind is predicted to gain."""
    return figures_of(gain, time=time_of_kind(kind))


def describe_possible(undecided: Sequence[Recommendation], outdated: Collection[UUID]) -> str | None:
    """Say what these recommendations could save together, or None if there are none.

    ``outdated`` are the ids of recommendations that change other rules than the current ones.
    """
    current = [row for row in undecided if row.pk not in outdated]
    leaks, gains = _possible(current)
    parts = [f"{leaks}."] if leaks else []
    if gains:
        parts.append(f"{gains[0].upper()}{gains[1:]}.")
    if gains and len(current) > 1:
        parts.append("Each was predicted alone: together they may save less.")
    return " ".join(parts) or None


def describe_open(
    undecided: Sequence[Recommendation], outdated: Collection[UUID], *, is_searching: bool = False
) -> str | None:
    """Say in one line what these recommendations could do, or None if there are none."""
    current = [row for row in undecided if row.pk not in outdated]
    parts = []
    if current:
        possible = "; ".join(filter(None, _possible(current)))
        parts.append(formats.count(len(current), "open recommendation") + (possible and f": {possible}"))
    if earlier := len(undecided) - len(current):
        are = "is" if earlier == 1 else "are"
        parts.append(
            f"{formats.count(earlier, 'recommendation')} {are} of earlier rules: "
            f"{'a new search is running' if is_searching else 'search again'}"
        )
    return "; ".join(parts) or None


def _possible(undecided: Sequence[Recommendation]) -> tuple[str, str]:
    """Return how many leaks could be closed, and what could be saved; empty texts for none."""
    leaks = sum(purpose_of(row.kind) == "privacy" for row in undecided)
    by_means: dict[str, list[Recommendation]] = defaultdict(list)
    for row in undecided:
        by_means[_means_of(row)].append(row)
    means = [
        f"{name} could save about {gains} a month"
        for name, rows in sorted(by_means.items())
        if (gains := _gains(rows))
    ]
    days = max((row.days for row in undecided), default=0)
    return (
        f"{formats.count(leaks, 'privacy leak')} to close" if leaks else "",
        f"judging by the {formats.count(days, 'day')} replayed, {'; '.join(means)}" if means else "",
    )


def _means_of(row: Recommendation) -> str:
    """Return what saves: changes of rules, or what is changed elsewhere."""
    if row.kind == Kind.AUTO_SUSPEND:
        return "letting the warehouse suspend sooner"
    return "changes of rules" if row.patch else "another schedule"


def _gains(rows: Sequence[Recommendation]) -> str:
    """Return what these recommendations are likely to save in a month, or an empty text."""
    money: dict[str, Decimal] = defaultdict(Decimal)
    times: dict[str, float] = defaultdict(float)
    for row in rows:
        gain = row.predicted["gain"]
        months = MONTH_DAYS / row.days
        times[time_of_kind(row.kind)] += max(middle(gain["savedMs"]), 0) * months
        if price := gain.get("money"):
            # Negative where less is billed.
            of_days = min((Decimal(price["low"]) + Decimal(price["high"])) / 2, Decimal())
            money[price["currency"]] -= of_days * MONTH_DAYS / row.days
    least = max(1000, _SHOWN * max(times.values(), default=0))
    return _listed(
        [
            *(formats.money(f"{value:.0f}", currency) for currency, value in money.items() if value >= 1),
            *(
                f"{formats.duration(ms)} of {name.lower()}"
                for name, ms in sorted(times.items())
                if ms >= least
            ),
        ]
    )


def _listed(texts: Sequence[str]) -> str:
    *first, last = texts or [""]
    return f"{', '.join(first)} and {last}" if first else last
