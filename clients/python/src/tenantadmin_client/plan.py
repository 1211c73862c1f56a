"""Compare the rules of a file with the rules of the service."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Change:
    """A field of a document that differs. None means that it is absent."""

    field: str
    before: Any
    after: Any


@dataclass(frozen=True)
class Difference:
    """What applying a file would change, by rule."""

    added: list[str]
    removed: list[str]
    changed: dict[str, list[Change]]
    reordered: bool

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed or self.reordered)


def complete(rule: dict[str, Any], *, ttl_seconds: int) -> dict[str, Any]:
    """Return a rule with the defaults that the service writes into it."""
    return {
        "name": rule.get("id"),
        "enabled": True,
        "action": "invalidate" if "invalidateRules" in rule else "cache",
        "conditions": {},
        "ttlSeconds": ttl_seconds,
        "requireInvalidation": False,
        **rule,
    }


def fields_that_differ(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Change]:
    """Return the fields of a document that change, by name."""
    return [
        Change(field, old.get(field), new.get(field))
        for field in sorted(old.keys() | new.keys())
        if old.get(field) != new.get(field)
    ]


def compare(live: list[dict[str, Any]], wanted: list[dict[str, Any]], *, ttl_seconds: int) -> Difference:
    """Compare live rules with the wanted ones. ``ttl_seconds`` is the tenant's default."""
    before = {rule["id"]: rule for rule in live}
    after = {str(rule.get("id")): complete(rule, ttl_seconds=ttl_seconds) for rule in wanted}
    changed = {}
    for name in before.keys() & after.keys():
        if fields := fields_that_differ(before[name], after[name]):
            changed[name] = fields
    kept_before = [name for name in before if name in after]
    kept_after = [name for name in after if name in before]
    return Difference(
        added=[name for name in after if name not in before],
        removed=[name for name in before if name not in after],
        changed={name: changed[name] for name in after if name in changed},
        reordered=kept_before != kept_after,
    )
