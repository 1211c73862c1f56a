"""``bypass``: stop storing results that nobody asks for again."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from analytics.advice.edits import Insert, new_rule_id
from analytics.advice.evidence import statements_evidence
from analytics.advice.proposal import Kind, Proposal
from analytics.advice.saving import find_saving
from logs.quoting import quote_text
from rules.conditions import parse_conditions
from rules.language import complete_rule

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from analytics.advice.proposal import Current
    from analytics.advice.requests import Series
    from rules.language import Rule

#: Results that are stored, at least, and the share of requests that are served from them, below this.
MIN_KEYS: Final = 500
MAX_RATE: Final = 0.05


def propose(current: Current) -> list[Proposal]:
    """Propose a bypass for the largest part of each cache rule that is hardly ever asked again."""
    found = []
    for index, rule in current.cache_rules():
        series = current.series_of(index)
        for name, conditions in _parts(series):
            condition = parse_conditions(conditions)
            inside = [one for one in series if one.statement.fits(condition)]
            proposal = _consider(current, index, rule, inside, name=name, conditions=conditions)
            if proposal is not None:
                found.append(proposal)
                break
    return found


def _parts(series: Sequence[Series]) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Yield the tables and the statements of a rule, those with the most results first."""
    tables: dict[str, int] = defaultdict(int)
    statements: dict[str, int] = defaultdict(int)
    for one in series:
        statements[one.statement.text] += 1
        for name in one.statement.names:
            tables[name] += 1
    for name, _ in sorted(tables.items(), key=lambda part: (-part[1], part[0])):
        yield name, {"isReadOnly": True, "tables": {"containsAny": [name]}}
    for text, _ in sorted(statements.items(), key=lambda part: (-part[1], part[0])):
        yield "one statement", {"standardizedSql": text}


def _consider(
    current: Current,
    index: int,
    rule: Rule,
    inside: Sequence[Series],
    *,
    name: str,
    conditions: Mapping[str, object],
) -> Proposal | None:
    saving = find_saving(current, inside, current.lifetimes[index])
    requests = sum(len(one.times) for one in inside)
    # A hidden literal may make each request a result of its own.
    keys = sum(len(one.times) if one.is_hidden else 1 for one in inside)
    if keys < MIN_KEYS or saving.high.hits >= MAX_RATE * requests:
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
        (statements_evidence(current, conditions, where=f"matchedRule = {quote_text(rule.id)}"),),
    )
