"""Assemble the sections of a digest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from analytics.digest.sections.errors import errors_section
from analytics.digest.sections.leaks import leaks_section
from analytics.digest.sections.moved import moved_section
from analytics.digest.sections.publishes import publishes_section
from analytics.digest.sections.recommendations import recommendations_section
from analytics.digest.sections.stale import stale_section
from analytics.digest.sections.statements import statements_section
from analytics.digest.sections.totals import quiet_section, totals_section

if TYPE_CHECKING:
    from analytics.digest.changes import Changes
    from analytics.digest.facts import Section
    from analytics.digest.periods import DigestPeriod
    from analytics.digest.reading import DigestLog

#: Raise it when the same log gives another digest. Then all stored digests are made again.
DIGEST_VERSION: Final = 2


def digest_document(log: DigestLog, period: DigestPeriod, changes: Changes) -> dict[str, Any]:
    """Return ``{kind, period, from, to, quiet, facts, names, sections}`` of a period that has entries.

    Each section is ``{id, heading, text}``. Its text has ``{id}`` in place of each fact and name. A quiet
    period has one section with one sentence.
    """
    candidates = (
        moved_section(log, period, changes),
        statements_section(log, period),
        errors_section(log, period, changes),
        stale_section(log, period),
        leaks_section(log, period),
        publishes_section(log, period, changes),
    )
    sections: list[Section] = [section for section in candidates if section is not None]
    quiet = None if sections else quiet_section(log, period)
    sections = [quiet] if quiet else [totals_section(log, period), *sections]
    # A recommendation may stay open for weeks, so it does not make a period remarkable.
    if not quiet and (recommended := recommendations_section(changes)):
        sections.append(recommended)
    return {
        "kind": period.kind,
        "period": period.name,
        "from": period.first.isoformat(),
        "to": period.last.isoformat(),
        "quiet": quiet is not None,
        "facts": [fact.as_json() for section in sections for fact in section.facts],
        "names": [name.as_json() for section in sections for name in section.names],
        "sections": [
            {"id": section.id, "heading": section.heading, "text": section.text} for section in sections
        ],
    }
