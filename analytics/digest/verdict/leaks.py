"""Leaks that a digest found: which rules leaked, and which revision closed the leaks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analytics.digest.facts import MOST_LEAKS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from accounts.models import Revision
    from analytics.models import Digest


def leaking_rules(digest: Digest) -> set[str]:
    """Return the rules whose results leaked, if the digest names the rules of all leaks."""
    names = [it for it in digest.document["names"] if it["id"].startswith("leak-")]
    rules = [it["value"] for it in names if it["kind"] == "rule"]
    statements = sum(it["kind"] == "statement" for it in names)
    return set(rules) if len(rules) == statements < MOST_LEAKS else set()


def find_closing_revision(digest: Digest, history: Sequence[Revision]) -> int | None:
    """Return the revision since which all rules that leaked keep the results of users apart, or None."""
    rules = leaking_rules(digest)
    closed_by = None
    for revision in history if rules else ():
        if not all(_keeps_apart(revision, rule_id) for rule_id in rules):
            closed_by = None
        elif closed_by is None:
            closed_by = revision.seq
    return closed_by


def _keeps_apart(revision: Revision, rule_id: str) -> bool:
    """Return True if the rule does not share results between users."""
    rules = {rule["id"]: rule for rule in (revision.document or {}).get("rules", [])}
    rule = rules.get(rule_id)
    # Another rule may cache the statement instead of one that is gone.
    return (
        rule is not None
        and rule["enabled"]
        and (rule["action"] != "cache" or "userName" in (rule.get("varyBy") or ()))
    )
