"""``ttl``: keep the results of a rule longer. ``swr``: serve an expired one while a fresh one is fetched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from analytics.advice.estimate import find_saving
from analytics.advice.proposal import TTLS, Kind, Proposal, RuleEdit, rule_evidence
from analytics.advice.words import describe_seconds

if TYPE_CHECKING:
    from analytics.advice.proposal import Current
    from analytics.replay.play import Lifetime

#: The stale windows that are tried, in seconds.
WINDOWS: Final = (60, 300, 900, 3600)
#: From this share of the best gain on, a lifetime counts as equal. The shortest of these is proposed.
_NEAR: Final = 0.97


def propose_ttl(current: Current) -> list[Proposal]:
    """Propose for each cache rule the longer lifetime that saves most with few hits at risk."""
    proposals = []
    for index, rule in current.cache_rules():
        own = current.lifetimes[index]
        longer = {ttl: replace(own, ttl_ms=1000 * ttl) for ttl in TTLS if ttl > rule.ttl_seconds}
        if found := _find_shortest(current, index, longer):
            proposals += propose_lifetime(current, index, *found)
    return proposals


def propose_lifetime(current: Current, index: int, seconds: int, gain: int) -> list[Proposal]:
    """Return the proposal to give a rule a lifetime, which saves ``gain`` (ms); none if lint warns of it."""
    rule = current.rules[index]
    edits = (RuleEdit.replace({**current.documents[index], "ttlSeconds": seconds}),)
    if not current.is_clean(edits):
        return []
    why = (
        (
            f"By the rules of the search they are fresh for {describe_seconds(rule.ttl_seconds)}. "
            "Many of them are asked for again after that."
        ),
        "Fewer than 1% of the hits would be older than a change of their tables that the log shows.",
        "If the tables also change past the Gateway, results may be as old as the lifetime.",
    )
    title = f"Keep the results of {rule.name} for {describe_seconds(seconds)}"
    evidence = (rule_evidence(current.days, rule.id),)
    return [Proposal(Kind.TTL, rule.id, title, why, edits, evidence, estimate=gain)]


def propose_swr(current: Current) -> list[Proposal]:
    """Propose a stale window for each cache rule that has invalidation markers and no window.

    A stale result is older than the lifetime allows, but a marker still ends it. Without markers it might be
    wrong.
    """
    proposals = []
    for index, rule in current.cache_rules():
        own = current.lifetimes[index]
        if rule.stale_while_revalidate or not own.markers:
            continue
        stale = {
            seconds: replace(own, stale_ms=1000 * seconds)
            for seconds in WINDOWS
            if seconds <= rule.ttl_seconds
        }
        if not (found := _find_shortest(current, index, stale)):
            continue
        seconds, gain = found
        edits = (RuleEdit.replace({**current.documents[index], "staleWhileRevalidate": seconds}),)
        title = (
            f"Let {rule.name} serve expired results for {describe_seconds(seconds)} while fresh ones are "
            "fetched"
        )
        why = (
            f"Results expire after {describe_seconds(rule.ttl_seconds)}.",
            "Soon after, a user waits for the same result again.",
            "The warehouse runs it as often, in the background: users save the time, and not the warehouse.",
            "A change that invalidates the rule still ends its results at once.",
        )
        if current.is_clean(edits):
            evidence = (rule_evidence(current.days, rule.id),)
            proposals.append(Proposal(Kind.SWR, rule.id, title, why, edits, evidence, estimate=gain))
    return proposals


def _find_shortest(current: Current, index: int, tried: Mapping[int, Lifetime]) -> tuple[int, int] | None:
    """Return the shortest of the safe lifetimes that save about the most, in seconds, and its gain (ms)."""
    series = current.series_of(index)
    now = find_saving(current.requests, series, current.lifetimes[index])
    then = {seconds: find_saving(current.requests, series, lifetime) for seconds, lifetime in tried.items()}
    gains = {seconds: saving.ms - now.ms for seconds, saving in then.items() if saving.is_safe}
    best = max(gains.values(), default=0)
    if best < current.least_ms:
        return None
    seconds = min(seconds for seconds, gain in gains.items() if gain >= _NEAR * best)
    return seconds, gains[seconds]
