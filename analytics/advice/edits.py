"""Small changes to a ruleset. Each names the ids of its rules, so a reader needs no other context."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec
from msgspec import UNSET, UnsetType

from rules.diff import StoredRule
from tenantadmin.lib.core.structs import JsonStruct

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

_MAX_SLUG: Final = 60
_NOT_IN_SLUG: Final = re.compile(r"[^a-z0-9]+")


class RuleEdit(JsonStruct):
    """A change of the rules: a rule is added before another one (null: at the end), replaced or moved."""

    op: Literal["insert", "replace", "remove", "move"]
    rule_id: str
    before: str | UnsetType | None = UNSET
    rule: StoredRule | None = None

    @classmethod
    def insert(cls, rule: Mapping[str, Any], *, before: str | None = None) -> RuleEdit:
        """Add a rule before the rule ``before``, or at the end."""
        return cls(op="insert", rule_id=rule["id"], before=before, rule=rule)

    @classmethod
    def replace(cls, rule: Mapping[str, Any]) -> RuleEdit:
        """Replace the rule that has the same id."""
        return cls(op="replace", rule_id=rule["id"], rule=rule)

    @classmethod
    def remove(cls, rule_id: str) -> RuleEdit:
        return cls(op="remove", rule_id=rule_id)

    @classmethod
    def move(cls, rule_id: str, *, before: str) -> RuleEdit:
        return cls(op="move", rule_id=rule_id, before=before)

    def apply(self, rules: list[Mapping[str, Any]]) -> None:
        """Change ``rules``. They have the rules that the edit names."""
        index, rule = len(rules), self.rule
        if self.op != "insert":
            index = _find(rules, self.rule_id)
            rule = rule or rules[index]
            del rules[index]
        if rule is None or self.op == "remove":
            return
        if isinstance(self.before, str):
            index = _find(rules, self.before)
        rules.insert(index, rule)


def apply_edits(rules: Iterable[Mapping[str, Any]], edits: Iterable[RuleEdit]) -> list[Mapping[str, Any]]:
    """Return the rules after the edits. Every rule that an edit names must exist."""
    changed = list(rules)
    for edit in edits:
        edit.apply(changed)
    return changed


def read_edits(patch: Sequence[Mapping[str, Any]]) -> list[RuleEdit]:
    """Read edits from their JSON."""
    return msgspec.convert(patch, list[RuleEdit])


def _find(rules: Sequence[Mapping[str, Any]], rule_id: str) -> int:
    return next(index for index, rule in enumerate(rules) if rule["id"] == rule_id)


def new_rule_id(text: str, taken: Collection[str]) -> str:
    """Return an id like ``cache-marketing`` that is not in ``taken``."""
    slug = _NOT_IN_SLUG.sub("-", text.lower()).strip("-")[:_MAX_SLUG].rstrip("-") or "rule"
    names = [slug, *(f"{slug}-{number}" for number in range(2, len(taken) + 3))]
    return next(name for name in names if name not in taken)
