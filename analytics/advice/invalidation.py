"""Find or make the rule that fires when a table changes, and split a rule that others invalidate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from analytics.advice.edits import RuleEdit, new_rule_id
from analytics.advice.requests import merge_times
from rules.conditions import parse_conditions
from rules.language import complete_rule

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from analytics.advice.proposal import Current
    from analytics.advice.requests import Write
    from rules.tables.names import TableName

#: The most names in one list of a condition.
MAX_TABLES: Final = 50


class Invalidator:
    """A rule that fires when tables change: a new one, or an existing one that gets one more target.

    Attributes:
        is_new: the rule must be added.
        times: the sorted times (epoch ms) at which it would have fired in the log.
        tables: a change of these tables fires it. Named as in the log.
    """

    def __init__(self, current: Current, writes: Sequence[Write], tables: frozenset[TableName]) -> None:
        conditions = _conditions(current, writes, tables)
        self.tables: Sequence[str] = conditions["tables"]["containsAny"]
        condition = parse_conditions(conditions)
        self._conditions = conditions
        self._current = current
        self._existing = next(
            (
                rule.id
                for rule in current.rules
                if rule.enabled and rule.invalidate_rules and dict(rule.conditions) == conditions
            ),
            None,
        )
        self.is_new = self._existing is None
        self.times = merge_times(
            write for write in current.requests.writes if write.statement.fits(condition)
        )

    def edit(self, target: str, *, name: str, taken: Collection[str] = ()) -> RuleEdit:
        """Return the edit that makes the rule ``target`` one of its targets."""
        for document in self._current.documents:
            if document["id"] == self._existing:
                targets = [*document["invalidateRules"], target]
                return RuleEdit.replace({**document, "invalidateRules": targets})
        rule_id = new_rule_id(f"{target}-changes", {*self._current.ids, *taken})
        return RuleEdit.insert(
            complete_rule(
                {
                    "id": rule_id,
                    "name": name,
                    "conditions": self._conditions,
                    "invalidateRules": [target],
                }
            )
        )


def split_rule(
    current: Current, index: int, part: Mapping[str, Any], *, part_id: str, name: str, vary_by: Sequence[str]
) -> list[RuleEdit]:
    """Return edits that move the requests of a rule which match ``part`` to a new rule before it.

    Rules that invalidate the old rule then invalidate the new one too.
    """
    document = current.documents[index]
    new = {
        **document,
        "id": part_id,
        "name": name[:200],
        "varyBy": list(vary_by),
        "conditions": {"all": [document["conditions"], part]},
    }
    return [
        RuleEdit.insert(complete_rule(new), before=document["id"]),
        *(
            RuleEdit.replace({**other, "invalidateRules": [*other["invalidateRules"], part_id]})
            for other in current.documents
            if document["id"] in other.get("invalidateRules", ())
        ),
    ]


def _conditions(current: Current, writes: Sequence[Write], tables: frozenset[TableName]) -> dict[str, Any]:
    """Return conditions that match these writes to the tables, with the names that the writes use."""
    names = current.requests.spell((write.statement for write in writes), tables)
    conditions: dict[str, Any] = {"isDataChange": True, "tables": {"containsAny": names[:MAX_TABLES]}}
    if any(write.statement.request["isDataChange"] is not True for write in writes):
        del conditions["isDataChange"]
        conditions = {"any": [{"isDataChange": True}, {"isDDL": True}], **conditions}
    return conditions
