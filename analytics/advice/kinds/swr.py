"""``swr``: serve an expired result while a fresh one is fetched."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from analytics.advice.edits import RuleEdit
from analytics.advice.evidence import rule_evidence
from analytics.advice.proposal import MIN_SHARE, Kind, Proposal, describe_seconds
from analytics.advice.saving import find_saving

if TYPE_CHECKING:
    from analytics.advice.proposal import Current
    from rules.language import Rule

#: The stale windows that are tried, in seconds.
WINDOWS: Final = (60, 300, 900, 3600)
#: From this share of the best gain on, a window counts as equal. The shortest of these is proposed.
_NEAR: Final = 0.97


def propose(current: Current) -> list[Proposal]:
    """Propose a stale window for each cache rule that has invalidation markers and no window.

    A stale result is older than the lifetime allows, but a marker still ends it. Without markers it might be
    wrong.
    """
    proposals = []
    for index, rule in current.cache_rules():
        lifetime = current.lifetimes[index]
        if rule.stale_while_revalidate or not lifetime.markers:
            continue
        series = current.series_of(index)
        now = find_saving(current, series, lifetime)
        gains = {}
        for seconds in WINDOWS:
            then = find_saving(current, series, replace(lifetime, stale_ms=1000 * seconds))
            if seconds <= rule.ttl_seconds and then.is_safe:
                gains[seconds] = then.ms - now.ms
        if not gains or max(gains.values()) < max(MIN_SHARE * current.warehouse_ms, 1):
            continue
        seconds = min(window for window, gain in gains.items() if gain >= _NEAR * max(gains.values()))
        edits = (RuleEdit.replace({**current.documents[index], "staleWhileRevalidate": seconds}),)
        if current.is_clean(edits):
            proposals.append(_propose(current, rule, seconds, edits, gains[seconds]))
    return proposals


def _propose(current: Current, rule: Rule, seconds: int, edits: tuple[RuleEdit, ...], gain: int) -> Proposal:
    return Proposal(
        Kind.SWR,
        rule.id,
        f"Let {rule.name} serve expired results for {describe_seconds(seconds)} while fresh ones are fetched",
        (
            f"Results expire after {describe_seconds(rule.ttl_seconds)}.",
            "Soon after, a user waits for the same result again.",
            "The warehouse runs it as often, in the background: users save the time, and not the warehouse.",
            "A change that invalidates the rule still ends its results at once.",
        ),
        edits,
        (rule_evidence(current.days, rule.id),),
        estimate=gain,
    )
