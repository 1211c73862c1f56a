"""The ``summary`` of a change of rules: counts and ids. Contract: Change history."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rules.diff import diff_rules

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rules.json_text import JsonObject

#: The maximum number of ids of each kind, to keep pages of history small. The counts are always complete.
_MAX_NAMES = 20


def summarize_rules(*, before: Sequence[JsonObject], after: Sequence[JsonObject]) -> dict[str, Any]:
    """Return ``{rules, added, removed, changed, reordered, names: {added, removed, changed}}``."""
    diff = diff_rules(before=before, after=after)
    names = {
        "added": [str(rule["id"]) for rule in diff.added],
        "removed": [str(rule["id"]) for rule in diff.removed],
        "changed": [change.rule_id for change in diff.changed],
    }
    old_ids = {rule["id"] for rule in before}
    new_ids = {rule["id"] for rule in after}
    kept_before = [rule["id"] for rule in before if rule["id"] in new_ids]
    kept_after = [rule["id"] for rule in after if rule["id"] in old_ids]
    return {
        "rules": len(after),
        **{kind: len(ids) for kind, ids in names.items()},
        "reordered": kept_before != kept_after,
        "names": {kind: ids[:_MAX_NAMES] for kind, ids in names.items() if ids},
    }
