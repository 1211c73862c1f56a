"""``ttl``: keep the results of a rule longer. ``swr``: serve an expired one while a fresh one is fetched."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from analytics.advice.estimate import find_saving
from analytics.advice.proposal import MIN_SHARE, TTLS, Kind, Proposal, RuleEdit, rule_evidence
from analytics.advice.words import describe_seconds

if TYPE_CHECKING:
    from collections.abc import Mapping

    from analytics.advice.proposal import Current
    from rules.language import Rule

#: From this share of the best gain on, a lifetime counts as equal. The shortest of these is proposed.
_NEAR_TTL = 0.97


def propose_ttl(current: Current) -> list[Proposal]:
    """Propose for each cache rule the longer lifetime that saves most with few hits at risk."""
    proposals = []
    for index, rule in current.cache_rules():
        lifetime = current.lifetimes[index]
        series = current.series_of(index)
        now = find_saving(current.requests, series, lifetime)
        gains: dict[int, int] = {}
        for ttl in TTLS:
            if ttl <= rule.ttl_seconds:
                continue
            then = find_saving(current.requests, series, replace(lifetime, ttl_ms=1000 * ttl))
            if then.is_safe:
                gains[ttl] = then.ms - now.ms
        if not gains or max(gains.values()) < max(MIN_SHARE * current.warehouse_ms, 1):
            continue
        ttl = min(ttl for ttl, gain in gains.items() if gain >= _NEAR_TTL * max(gains.values()))
        document = current.documents[index]
        edits = (RuleEdit.replace({**document, "ttlSeconds": ttl}),)
        if current.is_clean(edits):
            proposals.append(propose_lifetime(current, document, ttl, edits, gains[ttl]))
    return proposals


def propose_lifetime(
    current: Current, document: Mapping[str, object], ttl: int, edits: tuple[RuleEdit, ...], gain: int
) -> Proposal:
    """Return the proposal to give a rule the lifetime ``ttl`` (seconds) by these edits."""
    name, before = document["name"], document["ttlSeconds"]
    assert isinstance(before, int)  # noqa: S101 - a stored rule is complete
    return Proposal(
        Kind.TTL,
        str(document["id"]),
        f"Keep the results of {name} for {describe_seconds(ttl)}",
        (
            (
                f"By the rules of the search they are fresh for {describe_seconds(before)}. "
                "Many of them are asked for again after that."
            ),
            "Fewer than 1% of the hits would be older than a change of their tables that the log shows.",
            "If the tables also change past the Gateway, results may be as old as the lifetime.",
        ),
        edits,
        (rule_evidence(current.days, str(document["id"])),),
        estimate=gain,
    )


#: The stale windows that are tried, in seconds.
WINDOWS: Final = (60, 300, 900, 3600)

#: From this share of the best gain on, a window counts as equal. The shortest of these is proposed.
_NEAR: Final = 0.97


def propose_swr(current: Current) -> list[Proposal]:
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
        now = find_saving(current.requests, series, lifetime)
        gains = {}
        for seconds in WINDOWS:
            then = find_saving(current.requests, series, replace(lifetime, stale_ms=1000 * seconds))
            if seconds <= rule.ttl_seconds and then.is_safe:
                gains[seconds] = then.ms - now.ms
        if not gains or max(gains.values()) < max(MIN_SHARE * current.warehouse_ms, 1):
            continue
        seconds = min(window for window, gain in gains.items() if gain >= _NEAR * max(gains.values()))
        edits = (RuleEdit.replace({**current.documents[index], "staleWhileRevalidate": seconds}),)
        if current.is_clean(edits):
            proposals.append(_propose_window(current, rule, seconds, edits, gains[seconds]))
    return proposals


def _propose_window(
    current: Current, rule: Rule, seconds: int, edits: tuple[RuleEdit, ...], gain: int
) -> Proposal:
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
