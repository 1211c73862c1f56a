"""Rules as staff's list and form show them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from rules.rule_text import SAID_ACTIONS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: The actions that the form lets one choose. A rule that invalidates others stays one.
ACTIONS: Final = {name: text for name, text in SAID_ACTIONS.items() if name != "invalidate"}
#: The conditions that the form shows: the field, the operator, and the value that it writes.
_LISTS: Final = {"tables": "containsAny", "userName": "in"}
_FLAGS: Final = {"isReadOnly": True, "hasNonDeterministicFunctions": False}
_MAX_ID: Final = 100


def others_of(conditions: Mapping[str, Any]) -> dict[str, Any]:
    """Return the conditions that the form has no field for."""
    return {key: value for key, value in conditions.items() if not _has_field(key, value)}


def _has_field(key: str, value: Any) -> bool:
    if key in _FLAGS:
        return value is _FLAGS[key]
    is_list = key in _LISTS and isinstance(value, dict) and [*value] == [_LISTS[key]]
    return is_list and _is_listed(*value.values())


def _is_listed(values: Any) -> bool:
    """Return True if values can be written with commas."""
    return isinstance(values, list) and all(
        isinstance(it, str) and not re.search(r"[,\n]", it) for it in values
    )


def split_names(text: str) -> list[str]:
    """Return the names in a text with commas, each once, in their order."""
    return list(dict.fromkeys(filter(None, map(str.strip, text.split(",")))))


def conditions_of(
    *, tables: Sequence[str], users: Sequence[str], reads: bool, repeats: bool
) -> dict[str, Any]:
    """Return the conditions of a simple rule."""
    return {
        **({"tables": {"containsAny": list(tables)}} if tables else {}),
        **({"userName": {"in": list(users)}} if users else {}),
        **({"isReadOnly": True} if reads else {}),
        **({"hasNonDeterministicFunctions": False} if repeats else {}),
    }


def with_rule(rules: Sequence[Any], rule: Mapping[str, Any], *, place: int) -> list[Any]:
    """Return ``rules`` with a rule, which replaces the rule of its id, at a place (from 1)."""
    others = [it for it in rules if it["id"] != rule["id"]]
    return [*others[: place - 1], rule, *others[place - 1 :]]


def free_id(name: str, rules: Sequence[Any]) -> str:
    """Return an id for a rule of this name that no rule has."""
    taken = {rule["id"] for rule in rules}
    stem = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:_MAX_ID] or "rule"
    number = 1
    while (found := stem if number == 1 else f"{stem}-{number}") in taken:
        number += 1
    return found
