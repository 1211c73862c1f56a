"""``bypass``: stop storing results that nobody asks for again."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from analytics.advice.edits import Insert, new_rule_id
from analytics.advice.evidence import statements_evidence
from analytics.advice.proposal import Kind, Proposal
from analytics.advice.requests import ByTable
from analytics.advice.saving import find_saving
from logs.quoting import quote_text
from rules.language import complete_rule

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from analytics.advice.proposal import Current
    from analytics.advice.requests import Series, Statement
    from rules.language import Rule

#: Results that are stored, at least, and the share of requests that are served from them, below this.
MIN_KEYS: Final = 500
MAX_RATE: Final = 0.05


def propose(current: Current) -> list[Proposal]:
    """Propose a bypass for the largest part of each cache rule that is hardly ever asked again."""
    found = []
    for index, rule in current.cache_rules():
        for name, conditions, inside in _parts(current.series_of(index)):
            proposal = _consider(current, index, rule, inside, name=name, conditions=conditions)
            if proposal is not None:
                found.append(proposal)
                break
    return found


def _parts(series: Sequence[Series]) -> Iterator[tuple[str, Mapping[str, object], list[Series]]]:
    """Yield tables and statements of a rule with their requests, those with the most results first."""
    by_statement: dict[Statement, list[Series]] = defaultdict(list)
    tables: dict[str, int] = defaultdict(int)
    texts: dict[str, list[Series]] = defaultdict(list)
    for one in series:
        by_statement[one.statement].append(one)
        texts[one.statement.text].append(one)
        for name in one.statement.names:
            tables[name] += 1
    by_table = ByTable(statement for statement in by_statement if statement.request["isReadOnly"] is True)
    for name, _ in sorted(tables.items(), key=lambda part: (-part[1], part[0])):
        conditions = {"isReadOnly": True, "tables": {"containsAny": [name]}}
        yield name, conditions, [one for found in by_table.find(name) for one in by_statement[found]]
    for text, inside in sorted(texts.items(), key=lambda part: (-len(part[1]), part[0])):
        yield "one statement", {"standardizedSql": text}, inside


def _consider(
    current: Current,
    index: int,
    rule: Rule,
    inside: Sequence[Series],
    *,
    name: str,
    conditions: Mapping[str, object],
) -> Proposal | None:
    # A hidden literal may make each request a result of its own.
    keys = sum(len(one.times) if one.is_hidden else 1 for one in inside)
    if keys < MIN_KEYS:
        return None
    requests = sum(len(one.times) for one in inside)
    saving = find_saving(current, inside, current.lifetimes[index])
    if saving.high.hits >= MAX_RATE * requests:
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
    edits = (Insert(new, before=rule.id),)
    if not current.is_clean(edits):
        return None
    subject = f"{rule.id} {name if name != 'one statement' else conditions['standardizedSql']}"
    return Proposal(
        Kind.BYPASS,
        subject,
        f"Do not store results of {rule.name} for {name}",
        (
            f"{keys} results were stored for {requests} requests.",
            f"{saving.high.hits} of these were hits ({saving.high.hits / requests:.1%}).",
            "The cache would have room for results that are asked for again.",
        ),
        edits,
        (statements_evidence(current.days, conditions, where=f"matchedRule = {quote_text(rule.id)}"),),
    )
