"""``invalidator`` and ``split``: prevent hits that are older than a change of their tables."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from analytics.advice.edits import RuleEdit, new_rule_id
from analytics.advice.evidence import changes_evidence, rule_evidence
from analytics.advice.invalidation import Invalidator, split_rule
from analytics.advice.proposal import MIN_SHARE, Kind, Proposal
from analytics.advice.saving import find_saving
from rules.conditions import parse_conditions
from rules.tables.names import TableName
from tenantadmin.lib.core.formats import number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analytics.advice.proposal import Current
    from rules.language import Rule


def propose(current: Current) -> list[Proposal]:
    """Propose one repair for each cache rule with hits at risk."""
    proposals = []
    for index, rule in current.cache_rules():
        low, _, hits = current.risk.get(rule.id, (0, 0, 0))
        if low and (proposal := _repair(current, index, rule, low=low, hits=hits)):
            proposals.append(proposal)
    return proposals


def _repair(current: Current, index: int, rule: Rule, *, low: int, hits: int) -> Proposal | None:
    lifetime = current.lifetimes[index]
    all_series = current.series_of(index)
    fired = set(lifetime.markers)
    # Writes to tables that the rule's statements read, if they do not invalidate the rule.
    requests = current.requests
    statements = [series.statement for series in all_series]
    writes = requests.writes_to(requests.changed_by(statements))
    missed = [(write, tables) for write, tables in writes if not fired.issuperset(write.times)]
    if not missed:
        return None
    changed = frozenset[TableName]().union(*(tables for _, tables in missed))
    invalidator = Invalidator(current, [write for write, _ in missed], changed)
    repaired = replace(lifetime, markers=sorted({*lifetime.markers, *invalidator.times}))
    part = {"tables": {"containsAny": requests.spell(statements, changed)}}
    condition = parse_conditions(part)
    inside = [series for series in all_series if series.statement.fits(condition)]
    outside = [series for series in all_series if not series.statement.fits(condition)]
    now = find_saving(current, all_series, lifetime)
    inside_repaired, outside_now = (
        find_saving(current, inside, repaired),
        find_saving(current, outside, lifetime),
    )
    whole = inside_repaired.plus(find_saving(current, outside, repaired))
    split = inside_repaired.plus(outside_now)
    if split.high.risk_low * 2 > now.high.risk_low:
        return None
    if outside and split.ms - whole.ms >= max(MIN_SHARE * current.warehouse_ms, 1):
        edits, kind = _split(current, rule, index, part, invalidator), Kind.SPLIT
    else:
        edits = [invalidator.edit(rule.id, name=f"Changes make {rule.name} stale")]
        kind = Kind.INVALIDATOR
    if not current.is_clean(edits):
        return None
    return _propose(current, rule, kind, edits, invalidator, low=low, hits=hits)


def _split(
    current: Current, rule: Rule, index: int, part: dict[str, Any], invalidator: Invalidator
) -> list[RuleEdit]:
    """Return edits that move a part of a rule to a new rule, which ``invalidator`` invalidates too."""
    part_id = new_rule_id(f"{rule.id}-part", current.ids)
    name = f"{rule.name}: {', '.join(part['tables']['containsAny'])}"
    edits = split_rule(current, index, part, part_id=part_id, name=name, vary_by=rule.vary_by or ())
    last = invalidator.edit(part_id, name=f"Changes make a part of {rule.name} stale")
    return edits if any(edit.rule_id == last.rule_id for edit in edits) else [*edits, last]


def _propose(
    current: Current,
    rule: Rule,
    kind: Kind,
    edits: Sequence[RuleEdit],
    invalidator: Invalidator,
    *,
    low: int,
    hits: int,
) -> Proposal:
    tables = ", ".join(invalidator.tables)
    at_risk = f"{number(low)} of {number(hits)} hits of {rule.name}"
    why = [
        f"{at_risk} got a result that is older than a change of a table it reads.",
        f"{tables} changed {len(invalidator.times)} times, and not every change invalidates the rule.",
    ]
    if kind is Kind.SPLIT:
        why.append(
            "Only the statements that read these tables get a rule of their own, so that the others keep "
            "their results."
        )
    return Proposal(
        kind,
        rule.id,
        f"Invalidate {rule.name} when {tables} change{'s' if len(invalidator.tables) == 1 else ''}",
        tuple(why),
        tuple(edits),
        (changes_evidence(current.days, invalidator.tables), rule_evidence(current.days, rule.id)),
    )
