"""Rules as staff's list and form show them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

#: The actions that the form offers. A rule that invalidates others is edited as text.
ACTIONS: Final = {"cache": "cache the result", "bypass": "do not cache", "deny": "refuse the statement"}
#: The conditions that the form shows: the field, the operator, and the value that it writes.
_LISTS: Final = {"tables": "containsAny", "userName": "in"}
_FLAGS: Final = {"isReadOnly": True, "hasNonDeterministicFunctions": False}
_MAX_ID: Final = 100
_OPERATORS: Final = {
    "eq": "is",
    "ne": "is not",
    "in": "is one of",
    "notIn": "is none of",
    "startsWith": "starts with",
    "endsWith": "ends with",
    "regex": "matches",
    "gt": ">",
    "gte": "≥",
    "lt": "<",
    "lte": "≤",
    "containsAny": "has any of",
    "containsAll": "has all of",
    "cidr": "in",
}
#: What is meant if a key is false, and if it is true.
_SAID_FLAGS: Final = {
    "isReadOnly": ("does not only read", "only reads"),
    "isDDL": ("changes no schema", "changes a schema"),
    "isDataChange": ("changes no data", "changes data"),
    "hasParameters": ("has no parameters", "has parameters"),
    "hasNonDeterministicFunctions": (
        "calls no function such as now()",
        "calls functions such as now()",
    ),
}


def is_simple(rule: Mapping[str, Any]) -> bool:
    """Return True if the form can show all conditions of a rule."""
    conditions: Mapping[str, Any] = rule.get("conditions", {})
    return rule["action"] in ACTIONS and all(
        value is _FLAGS[key]
        if key in _FLAGS
        else key in _LISTS
        and isinstance(value, dict)
        and [*value] == [_LISTS[key]]
        and _is_listed(*value.values())
        for key, value in conditions.items()
    )


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


def named_tables(conditions: Any) -> Iterator[str]:
    """Yield the names and patterns of tables in conditions, wherever they are."""
    if isinstance(conditions, list):
        for condition in conditions:
            yield from named_tables(condition)
    elif isinstance(conditions, dict):
        for key, value in conditions.items():
            if key == "tables" and isinstance(value, dict):
                yield from (it for given in value.values() if isinstance(given, list) for it in given)
            else:
                yield from named_tables(value)


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


def say_conditions(conditions: Mapping[str, Any]) -> str:
    """Say conditions in one line, as the dashboard does: ``uses sales.* and only reads``."""
    return " and ".join(_said(conditions)) or "every request"


def _said(conditions: Mapping[str, Any]) -> Iterator[str]:
    for key, value in conditions.items():
        if isinstance(value, bool):
            yield _SAID_FLAGS[key][value] if key in _SAID_FLAGS else key if value else f"not {key}"
        elif key in {"all", "any"}:
            joined = " and " if key == "all" else " or "
            yield f"({joined.join(map(say_conditions, value))})"
        elif key == "not":
            yield f"not ({say_conditions(value)})"
        elif isinstance(value, dict):
            yield from (
                _test(key, operator, given) for operator, given in value.items() if operator != "ignoreCase"
            )
        else:
            yield f"{key} is {_text(value)}"


def _test(key: str, operator: str, given: Any) -> str:
    if key == "tables" and operator == "containsAny":
        return f"uses {_text(given)}"
    if operator == "exists":
        return f"{key} {'exists' if given else 'is absent'}"
    return f"{key} {_OPERATORS.get(operator, operator)} {_text(given)}"


def _text(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
