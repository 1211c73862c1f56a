"""``bypass``: stop storing results that are hardly ever requested again."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from analytics.advice.edits import RuleEdit, new_rule_id
from analytics.advice.evidence import statements_evidence
from analytics.advice.proposal import Kind, Proposal
from analytics.advice.requests import ByTable
from analytics.advice.saving import find_saving
from logs.quoting import quote_text
from rules.language import complete_rule
from tenantadmin.lib.core.formats import number, ratio

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from analytics.advice.proposal import Current
    from analytics.advice.requests import Series, Statement
    from rules.language import Rule

#: Propose a bypass from this number of stored results on, if the hit rate is lower than this.
MIN_KEYS: Final = 500
MAX_RATE: Final = 0.05


def propose(current: Current) -> list[Proposal]:
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
    keys = sum(len(series.times) if series.is_hidden else 1 for series in all_series)
    if keys < MIN_KEYS:
        return None
    times = sum(len(series.times) for series in all_series)
    saving = find_saving(current, all_series, current.lifetimes[index])
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
