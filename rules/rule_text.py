"""Say rules, and what a change of a rule changed, in words. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from accounts.diff import ChangeInWords, describe_value, equal_values, label_of
from tenantadmin.lib.core.formats import span

if TYPE_CHECKING:
    from rules.json_text import JsonObject

SAID_ACTIONS: Final = {
    "cache": "cache the result",
    "bypass": "do not cache",
    "deny": "refuse the statement",
    "invalidate": "make results of other rules stale",
}
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


def describe_conditions(conditions: Any) -> str:
    """Describe conditions in one line, as the dashboard does: ``uses sales.* and only reads``.

    A draft may have errors: what cannot be described is shown as JSON.
    """
    if not isinstance(conditions, dict):
        return describe_value(conditions)
    return " and ".join(_describe_tests(conditions)) or "every request"


def _describe_tests(conditions: Mapping[str, Any]) -> Iterator[str]:
    for key, value in conditions.items():
        if isinstance(value, bool):
            yield _SAID_FLAGS[key][value] if key in _SAID_FLAGS else key if value else f"not {key}"
        # What is joined by "and" needs brackets in an "or" alone.
        elif key == "all" and isinstance(value, list):
            yield " and ".join(map(describe_conditions, value))
        elif key == "any" and isinstance(value, list):
            yield f"({' or '.join(map(_alternative, value))})"
        elif key == "not":
            yield f"not ({describe_conditions(value)})"
        elif isinstance(value, dict):
            yield from (
                _test(key, operator, given) for operator, given in value.items() if operator != "ignoreCase"
            )
        else:
            yield f"{key} is {_text(value)}"


def _alternative(part: Any) -> str:
    is_joined = isinstance(part, dict) and isinstance(part.get("all"), list) and len(part["all"]) > 1
    return f"({describe_conditions(part)})" if is_joined else describe_conditions(part)


def _test(key: str, operator: str, given: Any) -> str:
    if key == "tables" and operator == "containsAny":
        return f"uses {_text(given)}"
    if operator == "exists":
        return f"{key} {'exists' if given else 'is absent'}"
    return f"{key} {_OPERATORS.get(operator, operator)} {_text(given)}"


def _text(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def describe_rule_changes(before: JsonObject, after: JsonObject) -> tuple[ChangeInWords, ...]:
    """Describe what differs between two rules, in the order of the fields of the form."""
    names = dict.fromkeys([*_FIELDS, *before, *after])
    return tuple(
        ChangeInWords(
            field=label_of_field(f"/{name}"),
            before=_describe_field(name, before.get(name)),
            after=_describe_field(name, after.get(name)),
        )
        for name in names
        if not equal_values(before.get(name), after.get(name))
    )


def label_of_field(pointer: str) -> str:
    """Return the label of the field of a rule in which a JSON Pointer ends."""
    return _FIELDS.get(pointer.split("/")[1]) or label_of(pointer)


def _describe_field(name: str, value: Any) -> str:
    show = _SHOWN.get(name)
    return describe_value(value, show[1] if show and isinstance(value, show[0]) else None)


def _describe_sharing(columns: Sequence[Any]) -> str:
    """Describe whom a result serves."""
    if columns == ["userName"]:
        return "only the user who asked"
    return f"requests with the same {_text(columns)}" if columns else "every user"


#: The fields of a rule with the labels of its form.
_FIELDS: Final = {
    "name": "Name",
    "conditions": "Applies to",
    "action": "Then",
    "ttlSeconds": "A result is fresh for",
    "varyBy": "A result serves",
    "staleWhileRevalidate": "Then served stale for",
    "description": "Description",
    "invalidateRules": "Makes results of these rules stale",
    "requireInvalidation": "Refused if results cannot be marked as stale",
    "enabled": "Switched on",
}
#: How values of a type are said.
_SHOWN: Final[Mapping[str, tuple[type, Callable[[Any], str]]]] = {
    "conditions": (dict, describe_conditions),
    "action": (str, lambda value: SAID_ACTIONS.get(value, value)),
    "ttlSeconds": (int, span),
    "staleWhileRevalidate": (int, span),
    "varyBy": (list, _describe_sharing),
}
