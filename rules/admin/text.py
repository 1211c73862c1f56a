"""Rules as text, to show how they differ, and their names."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from tenantadmin.lib.http.difference import diff_texts

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_FIRST: Final = ("id", "name", "description", "enabled", "action", "conditions", "ttlSeconds")


def diff_lines(before: Sequence[Any], after: Sequence[Any]) -> list[tuple[str, str]]:
    """Return the lines of a diff of two rulesets, as `diff_texts` does."""
    return diff_texts(_text_of(before), _text_of(after))


def _text_of(rules: Sequence[dict[str, Any]]) -> str:
    """Return the text of rules. The database does not keep the order of their properties."""
    return json.dumps([_in_order(rule) for rule in rules], indent=2, ensure_ascii=False)


def _in_order(rule: dict[str, Any]) -> dict[str, Any]:
    """Return a rule with its properties in a fixed order: names, action, then the rest."""
    names = [*(name for name in _FIRST if name in rule), *sorted(rule.keys() - set(_FIRST))]
    return {name: json.loads(json.dumps(rule[name], sort_keys=True)) for name in names}


def name_rules(rules: Iterable[dict[str, Any]]) -> dict[str, str]:
    """Return the names of rules by id. A rule without a name has its id."""
    return {rule["id"]: str(rule.get("name") or rule["id"]) for rule in rules}
