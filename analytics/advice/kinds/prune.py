"""Rules that earn nothing.

``bypass``: stop storing results that are hardly ever requested again. ``reorder`` and ``remove``: move or
remove cache rules that an earlier rule makes unreachable.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from analytics.advice.estimate import ByTable, find_saving
from analytics.advice.proposal import (
    Kind,
    Proposal,
    RuleEdit,
    new_rule_id,
    rule_evidence,
    statements_evidence,
)
from analytics.advice.words import describe_seconds
from logs.quoting import quote_text
from rules.language import Action, complete_rule
from rules.lint import lint_ruleset
from tenantadmin.lib.core.formats import number, ratio

if TYPE_CHECKING:
    from analytics.advice.estimate import Series, Statement
    from analytics.advice.proposal import Current
    from rules.language import Rule

#: Propose a bypass from this number of stored results on, if the hit rate is lower than this.
MIN_KEYS: Final = 500
MAX_RATE: Final = 0.05


def propose_bypass(current: Current) -> list[Proposal]:
    """Propose a bypass for one part of each cache rule: the largest one with a low hit rate."""
    proposals = []
    for index, rule in current.cache_rules():
        for name, conditions, inside in _parts(current.series_of(index)):
            proposal = _consider(current, index, rule, inside, name=name, conditions=conditions)
            if proposal is not None:
                proposals.append(proposal)
                break
    return proposals


def _parts(all_series: Sequence[Series]) -> Iterator[tuple[str, Mapping[str, object], list[Series]]]:
    """Yield the tables of a rule, then its statements, each with its requests; the most results first."""
    by_statement: dict[Statement, list[Series]] = defaultdict(list)
    tables: dict[str, int] = defaultdict(int)
    texts: dict[str, list[Series]] = defaultdict(list)
    for item in all_series:
        by_statement[item.statement].append(item)
        texts[item.statement.text].append(item)
        for name in item.statement.names:
            tables[name] += 1
    by_table = ByTable(statement for statement in by_statement if statement.request["isReadOnly"] is True)
    for name, _ in sorted(tables.items(), key=lambda part: (-part[1], part[0])):
        conditions = {"isReadOnly": True, "tables": {"containsAny": [name]}}
        yield (
            name,
            conditions,
            [item for statement in by_table.find(name) for item in by_statement[statement]],
        )
    for text, own_series in sorted(texts.items(), key=lambda part: (-len(part[1]), part[0])):
        yield "one statement", {"standardizedSql": text}, own_series


def _consider(
    current: Current,
    index: int,
    rule: Rule,
    all_series: Sequence[Series],
    *,
    name: str,
    conditions: Mapping[str, object],
) -> Proposal | None:
    # With hidden literals, each request may have a different result.
    keys = sum(series.weight * (len(series.times) if series.is_hidden else 1) for series in all_series)
    if keys < MIN_KEYS:
        return None
    times = sum(series.weight * len(series.times) for series in all_series)
    saving = find_saving(current.requests, all_series, current.lifetimes[index])
    if saving.high.hits >= MAX_RATE * times:
        return None
    rule_id = new_rule_id(f"bypass-{rule.id}-{'' if name == 'one statement' else name}", current.ids)
    new = complete_rule(
        {
            "id": rule_id,
            "name": f"{rule.name}: {name} is not worth storing",
            "action": "bypass",
            "conditions": {"all": [rule.conditions, conditions]},
        }
    )
    edits = (RuleEdit.insert(new, before=rule.id),)
    if not current.is_clean(edits):
        return None
    subject = f"{rule.id} {name if name != 'one statement' else conditions['standardizedSql']}"
    return Proposal(
        Kind.BYPASS,
        subject,
        f"Do not store results of {rule.name} for {name}",
        (
            f"{number(keys)} results were stored. They were asked for {number(times)} times.",
            f"{number(saving.high.hits)} of these were hits ({ratio(saving.high.hits, times)}).",
            "The cache would have room for results that are asked for again.",
        ),
        edits,
        (statements_evidence(current.days, conditions, where=f"matchedRule = {quote_text(rule.id)}"),),
    )


def propose_order(current: Current) -> list[Proposal]:
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
        then = find_saving(current.requests, inside, own)
        gain = then.ms - find_saving(current.requests, inside, current.lifetimes[index]).ms
        edits = (RuleEdit.move(rule.id, before=wider.id),)
        if gain < current.least_ms or not then.is_safe or not current.is_clean(edits):
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
