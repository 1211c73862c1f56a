"""Recommendations that wait for a decision."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from analytics.digest.facts import Name, NameKind, Section

if TYPE_CHECKING:
    from analytics.digest.changes import Changes

_MOST: Final = 3


def recommendations_section(changes: Changes) -> Section | None:
    """Return the first recommendations that were open when the digest was made."""
    names = [
        Name(f"recommendation-{number}", NameKind.RECOMMENDATION, found.title, found.href)
        for number, found in enumerate(changes.recommendations[:_MOST], start=1)
    ]
    if not names:
        return None
    sentences = [f"It would help: {{{name.id}}}." for name in names]
    if len(changes.recommendations) > len(names):
        sentences.append("There are more open recommendations.")
    return Section("recommendations", "Open recommendations", sentences, names=names)
