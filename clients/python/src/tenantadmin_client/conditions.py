"""Refuse conditions with a misspelt key before they are sent.

A condition that a server ignored would match everything. This service refuses unknown keys too; the check
here names them without a request.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Any

KEYS = frozenset(
    {
        "standardizedSql",
        "statementType",
        "tables",
        "tableCount",
        "isReadOnly",
        "isDataChange",
        "isDDL",
        "hasParameters",
        "hasNonDeterministicFunctions",
        "cacheOverride",
        "userName",
        "clientIp",
        "userAgent",
        "host",
        "origin",
        "referer",
        "operationType",
        "adapterType",
        "serverHostname",
    }
)
_GROUPS = frozenset({"all", "any", "not"})


class UnknownCondition(ValueError):
    """A condition has an unknown key.

    Attributes:
        path: JSON Pointer to the key.
        nearest: the known key that is most similar, or None.
    """

    def __init__(self, path: str, key: str, place: str = "") -> None:
        self.path = path
        close = difflib.get_close_matches(key, sorted(KEYS | _GROUPS), n=1)
        self.nearest = close[0] if close else None
        hint = f" Did you mean '{self.nearest}'?" if self.nearest else ""
        super().__init__(f"{place}{path}: there is no condition key '{key}'.{hint}")


def check_conditions(rules: list[dict[str, Any]], *, place: str = "") -> None:
    """Check the keys in the conditions of rules. ``place`` begins the message, for example with a file.

    Raises:
        UnknownCondition: for the first unknown key.
    """
    for index, rule in enumerate(rules):
        for path, key in _keys(rule.get("conditions"), f"/rules/{index}/conditions"):
            if key not in KEYS and key not in _GROUPS:
                raise UnknownCondition(path, key, place)


def _keys(conditions: object, path: str) -> Iterator[tuple[str, str]]:
    if not isinstance(conditions, dict):
        return
    for key, value in conditions.items():
        yield f"{path}/{key}", key
        if key == "not":
            yield from _keys(value, f"{path}/not")
        elif key in {"all", "any"} and isinstance(value, list):
            for index, part in enumerate(value):
                yield from _keys(part, f"{path}/{key}/{index}")
