"""Compare two revisions of a ruleset, and apply changes to another one. Contract: Change history."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, TypeAlias

import msgspec
from msgspec import Meta

from accounts.diff import ChangeInWords, FieldChange, diff_documents
from rules.json_text import JsonObject
from rules.language import complete_rule
from rules.rule_text import describe_rule_changes
from tenantadmin.lib.core.structs import JsonStruct, sent_as

#: The maximum number of ids of each kind in a summary, to keep pages of history small. Counts are complete.
_MAX_NAMES: Final = 20

#: A rule as it is stored.
StoredRule: TypeAlias = Annotated[JsonObject, sent_as("rules.serializers.Rule")]


class RuleChange(JsonStruct):
    """A rule that differs between two revisions. Paths are relative to the rule."""

    component = "RuleDifference"

    rule_id: str = msgspec.field(name="id")
    name: Annotated[str | None, Meta(description="Of the later rule.")] = None
    fields: tuple[FieldChange, ...]
    in_words: tuple[ChangeInWords, ...] | None = None


@dataclass(frozen=True, slots=True)
class RulesDiff:
    """Added and changed rules in the later revision's order, removed rules in the earlier revision's."""

    added: tuple[JsonObject, ...]
    removed: tuple[JsonObject, ...]
    changed: tuple[RuleChange, ...]
    #: The rules that both have are in another order.
    reordered: bool

    def labels(self) -> dict[str, dict[str, str | None]]:
        """Return the names, by id, of the rules that are ``added``, ``removed`` and ``changed``."""
        return {
            "added": {str(rule["id"]): _name_of(rule) for rule in self.added},
            "removed": {str(rule["id"]): _name_of(rule) for rule in self.removed},
            "changed": {change.rule_id: change.name for change in self.changed},
        }


def diff_rules(
    *, before: Sequence[JsonObject], after: Sequence[JsonObject], in_words: bool = True
) -> RulesDiff:
    """Compare stored rules by id."""
    old = {rule["id"]: rule for rule in before}
    new = {rule["id"]: rule for rule in after}
    compared = (
        (old[rule_id], rule, diff_documents(before=old[rule_id], after=rule))
        for rule_id, rule in new.items()
        if rule_id in old
    )
    return RulesDiff(
        added=tuple(rule for rule_id, rule in new.items() if rule_id not in old),
        removed=tuple(rule for rule_id, rule in old.items() if rule_id not in new),
        changed=tuple(
            RuleChange(
                rule_id=str(rule["id"]),
                name=_name_of(rule),
                fields=fields,
                in_words=describe_rule_changes(before_it, rule) if in_words else None,
            )
            for before_it, rule, fields in compared
            if fields
        ),
        reordered=is_reordered([*old], [*new]),
    )


def _name_of(rule: JsonObject) -> str | None:
    return str(rule["name"]) if rule.get("name") else None


def complete_rules(rules: Sequence[Any]) -> list[dict[str, object]]:
    """Return the rules that have an id, with their defaults. Of several with the same id, the last counts."""
    by_id = {
        rule["id"]: complete_rule(rule)
        for rule in rules
        if isinstance(rule, dict) and isinstance(rule.get("id"), str)
    }
    return list(by_id.values())


def summarize_rules(*, before: Sequence[JsonObject], after: Sequence[JsonObject]) -> dict[str, Any]:
    """Return the ``summary`` of a revision: counts, ids, and the names of rules by id.

    Its shape: ``{rules, added, removed, changed, reordered, names: {added, removed, changed}, labels}``.
    """
    diff = diff_rules(before=before, after=after, in_words=False)
    changes = diff.labels()
    named = {kind: list(labels)[:_MAX_NAMES] for kind, labels in changes.items() if labels}
    labels = {rule_id: changes[kind][rule_id] for kind, ids in named.items() for rule_id in ids}
    return {
        "rules": len(after),
        **{kind: len(labels) for kind, labels in changes.items()},
        "reordered": diff.reordered,
        "names": named,
        "labels": {rule_id: label for rule_id, label in labels.items() if label not in {None, rule_id}},
    }


def is_reordered(before: Sequence[object], after: Sequence[object]) -> bool:
    """Return True if the ids that both have are in another order."""
    old, new = set(before), set(after)
    return [name for name in before if name in new] != [name for name in after if name in old]


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
