"""Undecided recommendations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from analytics.digest.facts import Name, NameKind, Section

if TYPE_CHECKING:
    from analytics.digest.changes import Changes

_MOST: Final = 3


def recommendations_section(changes: Changes) -> Section | None:
    """Return the first open recommendations at the time when the digest is made."""
    names = [
        Name(
            id=f"recommendation-{number}",
            kind=NameKind.RECOMMENDATION,
            value=recommendation.title,
            href=recommendation.href,
        )
        for number, recommendation in enumerate(changes.recommendations[:_MOST], start=1)
    ]
    if not names:
        return None
    sentences = [f"It would help: {{{name.id}}}." for name in names]
    if len(changes.recommendations) > len(names):
        sentences.append("There are more open recommendations.")
    return Section("recommendations", "Open recommendations", sentences, names=names)
