"""Leaks that a digest found: which revision closed them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rules.conditions import read_request
from rules.language import read_rules
from rules.match import find_possible

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from accounts.models import Revision
    from analytics.models import Digest


def read_leaking(digest: Digest) -> list[Mapping[str, Any]]:
    """Return what is known of the statements that leaked, or nothing if the digest does not know them all."""
    leaking: list[Mapping[str, Any]] = digest.document.get("leaking", [])
    return leaking


def find_closing_revision(digest: Digest, history: Sequence[Revision]) -> int | None:
    """Return the revision since which no statement that leaked can leak again, or None.

    A statement can leak if a rule that may decide it shares results. What is not known of its requests, such
    as who asks, may be anything.
    """
    closed_by = None
    requests = [
        {name: value for name, value in read_request(known).items() if name in known}
        for known in read_leaking(digest)
    ]
    for revision in reversed(history) if requests else ():
        rules = read_rules((revision.document or {}).get("rules", ()))
        if any(rule.is_shared for known in requests for rule in find_possible(rules, known)):
            break
        closed_by = revision.seq
    return closed_by
