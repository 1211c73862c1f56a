"""Apply what a draft changes to rules that were written since. Imports no Django."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rules.language import complete_rule

if TYPE_CHECKING:
    from collections.abc import Sequence


def rebase_rules(base: Sequence[Any], mine: Sequence[Any], theirs: Sequence[Any]) -> list[dict[str, Any]]:
    """Apply the changes from ``base`` to ``mine`` to the rules in force, ``theirs``. All rules must be valid.

    A rule that both sides changed is taken from ``mine``. Rules keep the order of ``theirs``, unless ``mine``
    reordered them. A rule that only one side has stays behind the rule before it on that side.
    """
    before, own, live = (
        {rule["id"]: rule for rule in map(complete_rule, side)} for side in (base, mine, theirs)
    )
    first, second = live, own
    if [rule_id for rule_id in own if rule_id in before] != [rule_id for rule_id in before if rule_id in own]:
        first, second = own, live
    order = list(first)
    place = 0
    for rule_id in second:
        if rule_id not in first:
            order.insert(place, rule_id)
        place = order.index(rule_id) + 1
    merged = {
        rule_id: (live if own.get(rule_id) == before.get(rule_id) else own).get(rule_id) for rule_id in order
    }
    return [rule for rule in merged.values() if rule is not None]
