"""``ttl``: keep the results of a cache rule longer."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from analytics.advice.edits import RuleEdit
from analytics.advice.evidence import rule_evidence
from analytics.advice.proposal import (
    MIN_SHARE,
    TTLS,
    Kind,
    Proposal,
    describe_seconds,
)
from analytics.advice.saving import find_saving

if TYPE_CHECKING:
    from collections.abc import Mapping

    from analytics.advice.proposal import Current

#: From this share of the best gain on, a lifetime counts as equal. The shortest of these is proposed.
_NEAR = 0.97


def propose(current: Current) -> list[Proposal]:
    """Propose for each cache rule the longer lifetime that saves most with few hits at risk."""
    proposals = []
    for index, rule in current.cache_rules():
        lifetime = current.lifetimes[index]
        series = current.series_of(index)
        now = find_saving(current, series, lifetime)
        gains: dict[int, int] = {}
        for ttl in TTLS:
            if ttl <= rule.ttl_seconds:
                continue
            then = find_saving(current, series, replace(lifetime, ttl_ms=1000 * ttl))
            if then.is_safe:
                gains[ttl] = then.ms - now.ms
        if not gains or max(gains.values()) < max(MIN_SHARE * current.warehouse_ms, 1):
            continue
        ttl = min(ttl for ttl, gain in gains.items() if gain >= _NEAR * max(gains.values()))
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
