"""Small changes to a ruleset. Each names the ids of its rules, so a reader needs no other context."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

_MAX_SLUG: Final = 60
_NOT_IN_SLUG: Final = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True, slots=True)
class Insert:
    """Add a rule before the rule ``before``, or at the end."""

    rule: Mapping[str, Any]
    before: str | None = None

    def apply(self, rules: list[Mapping[str, Any]]) -> None:
        index = len(rules) if self.before is None else _find(rules, self.before)
        rules.insert(index, self.rule)

    def as_json(self) -> dict[str, Any]:
        return {"op": "insert", "ruleId": self.rule["id"], "before": self.before, "rule": dict(self.rule)}


@dataclass(frozen=True, slots=True)
class Replace:
    """Replace the rule that has the same id."""

    rule: Mapping[str, Any]

    def apply(self, rules: list[Mapping[str, Any]]) -> None:
        rules[_find(rules, self.rule["id"])] = self.rule

    def as_json(self) -> dict[str, Any]:
        return {"op": "replace", "ruleId": self.rule["id"], "rule": dict(self.rule)}


@dataclass(frozen=True, slots=True)
class Remove:
    """Remove a rule."""

    rule_id: str

    def apply(self, rules: list[Mapping[str, Any]]) -> None:
        del rules[_find(rules, self.rule_id)]

    def as_json(self) -> dict[str, Any]:
        return {"op": "remove", "ruleId": self.rule_id}


@dataclass(frozen=True, slots=True)
class Move:
    """Move a rule before the rule ``before``."""

    rule_id: str
    before: str

    def apply(self, rules: list[Mapping[str, Any]]) -> None:
        rule = rules.pop(_find(rules, self.rule_id))
        rules.insert(_find(rules, self.before), rule)

    def as_json(self) -> dict[str, Any]:
        return {"op": "move", "ruleId": self.rule_id, "before": self.before}


Edit = Insert | Replace | Remove | Move


def apply_edits(rules: Iterable[Mapping[str, Any]], edits: Iterable[Edit]) -> list[Mapping[str, Any]]:
    """Return the rules after the edits. Every rule that an edit names must exist."""
    changed = list(rules)
    for edit in edits:
        edit.apply(changed)
    return changed


def read_edits(patch: Iterable[Mapping[str, Any]]) -> list[Edit]:
    """Read edits from their JSON."""
    return [_read_edit(edit) for edit in patch]


def _read_edit(edit: Mapping[str, Any]) -> Edit:
    match edit["op"]:
        case "insert":
            return Insert(edit["rule"], edit["before"])
        case "replace":
            return Replace(edit["rule"])
        case "remove":
            return Remove(edit["ruleId"])
        case _:
            return Move(edit["ruleId"], edit["before"])


def _find(rules: Sequence[Mapping[str, Any]], rule_id: str) -> int:
    return next(index for index, rule in enumerate(rules) if rule["id"] == rule_id)


def new_rule_id(text: str, taken: Collection[str]) -> str:
    """Return an id like ``cache-marketing`` that is not in ``taken``."""
    slug = _NOT_IN_SLUG.sub("-", text.lower()).strip("-")[:_MAX_SLUG].rstrip("-") or "rule"
    names = [slug, *(f"{slug}-{number}" for number in range(2, len(taken) + 3))]
    return next(name for name in names if name not in taken)
