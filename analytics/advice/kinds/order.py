"""``reorder`` and ``remove``: move or remove cache rules that an earlier rule makes unreachable."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analytics.advice.edits import RuleEdit
from analytics.advice.evidence import rule_evidence
from analytics.advice.proposal import MIN_SHARE, Kind, Proposal, describe_seconds
from analytics.advice.saving import find_saving
from rules.language import Action
from rules.lint import lint_ruleset

if TYPE_CHECKING:
    from collections.abc import Iterator

    from analytics.advice.proposal import Current
    from rules.language import Rule


def propose(current: Current) -> list[Proposal]:
    """Propose to move an unreachable rule before the wider rule if that saves time, else to remove it."""
    proposals = []
    for rule in _find_unreachable(current):
        proposal = _reorder(current, rule) or _remove(current, rule)
        if proposal is not None:
            proposals.append(proposal)
    return proposals


def _find_unreachable(current: Current) -> Iterator[Rule]:
    """Yield the cache rules that lint finds unreachable."""
    result = lint_ruleset({"rules": list(current.documents)})
    unreachable = {finding.rule_id for finding in result.warnings if finding.code == "unreachable-rule"}
    for _, rule in current.cache_rules():
        if rule.id in unreachable and not rule.invalidate_rules:
            yield rule


def _reorder(current: Current, rule: Rule) -> Proposal | None:
    """Propose to move the rule before the wider cache rule, if that saves time."""
    for index, wider in current.cache_rules():
        if wider.id == rule.id:
            return None
        series = current.series_of(index)
        inside = [item for item in series if item.statement.fits(rule.condition)]
        if not inside:
            continue
        own = current.lifetimes[current.rules.index(rule)]
        then = find_saving(current, inside, own)
        gain = then.ms - find_saving(current, inside, current.lifetimes[index]).ms
        edits = (RuleEdit.move(rule.id, before=wider.id),)
        if gain < max(MIN_SHARE * current.warehouse_ms, 1) or not then.is_safe or not current.is_clean(edits):
            return None
        return Proposal(
            Kind.REORDER,
            rule.id,
            f"Move {rule.name} before {wider.name}",
            (
                f"{wider.name} comes first and decides everything that {rule.name} is for.",
                f"That one keeps results for {describe_seconds(wider.ttl_seconds)}.",
                f"{rule.name} would keep them for {describe_seconds(rule.ttl_seconds)}.",
            ),
            edits,
            (rule_evidence(current.days, rule.id), rule_evidence(current.days, wider.id)),
            estimate=gain,
        )
    return None


def _remove(current: Current, rule: Rule) -> Proposal | None:
    edits: list[RuleEdit] = []
    for other in current.documents:
        targets = other.get("invalidateRules", ())
        if rule.id in targets:
            rest = [target for target in targets if target != rule.id]
            if not rest and other["action"] == Action.INVALIDATE:
                edits.append(RuleEdit.remove(other["id"]))
            else:
                kept = {name: value for name, value in other.items() if name != "invalidateRules"}
                edits.append(RuleEdit.replace({**kept, "invalidateRules": rest} if rest else kept))
    edits.append(RuleEdit.remove(rule.id))
    if not current.is_clean(edits):
        return None
    return Proposal(
        Kind.REMOVE,
        rule.id,
        f"Remove {rule.name}",
        (
            "An earlier rule matches everything that it matches, so it never decides.",
            "Without it, the rules do the same and are easier to read.",
        ),
        tuple(edits),
        (rule_evidence(current.days, rule.id),),
    )
