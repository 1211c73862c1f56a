"""Assemble the sections of a digest."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
from msgspec import Meta

from analytics.digest.facts import LEAKS, Fact, Name, NameKind
from analytics.digest.periods import DigestKind
from analytics.digest.sections.errors import errors_section
from analytics.digest.sections.leaks import find_leaking, leaks_section
from analytics.digest.sections.moved import moved_section
from analytics.digest.sections.publishes import publishes_section
from analytics.digest.sections.recommendations import recommendations_section
from analytics.digest.sections.savings import savings_section
from analytics.digest.sections.stale import stale_section
from analytics.digest.sections.statements import statements_section
from analytics.digest.sections.totals import (
    fell_section,
    quiet_section,
    read_totals,
    totals_section,
)
from logs.quoting import quote_value
from tenantadmin.lib.core.structs import JsonStruct

if TYPE_CHECKING:
    from analytics.digest.changes import Changes
    from analytics.digest.facts import Section
    from analytics.digest.periods import DigestPeriod
    from analytics.digest.reading import DigestLog

#: Raise it when the same log gives another digest. Then all stored digests are made again.
DIGEST_VERSION: Final = 13


class SectionText(JsonStruct):
    id: str
    heading: str
    text: Annotated[str, Meta(description="Sentences, one per line, with `{id}` for each fact and name.")]


class DigestHead(JsonStruct):
    """A digest without its facts and texts."""

    kind: DigestKind
    period: Annotated[str, Meta(description="`2026-03-01`, or `2026-W09`.")]
    from_: dt.date
    to: dt.date
    quiet: Annotated[bool, Meta(description="Nothing was unusual: one section of one sentence.")]
    names: list[Name]


class StoredDigest(DigestHead):
    """A digest as it is stored. The texts of its sections are templates."""

    facts: list[Fact]
    sections: list[SectionText]
    #: See `find_leaking`.
    leaking: list[dict[str, Any]] = []  # noqa: RUF012 - msgspec copies it


def make_document(log: DigestLog, period: DigestPeriod, changes: Changes) -> StoredDigest:
    """Return the digest of a period that has entries.

    A quiet period has one section with one sentence.
    """
    totals = read_totals(log, period)
    # What was unusual comes first, the most harmful of it before the rest.
    candidates = (
        fell_section(log, period, changes, totals),
        errors_section(log, period, changes),
        leaks_section(log, period),
        stale_section(log, period),
        moved_section(log, period, changes),
        statements_section(log, period),
        publishes_section(log, period, changes),
    )
    sections: list[Section] = [section for section in candidates if section is not None]
    quiet = None if sections else quiet_section(period, totals)
    sections = [quiet] if quiet else [*sections, totals_section(period, totals)]
    if not quiet and (saved := savings_section(log, period)):
        sections.append(saved)
    # A recommendation may stay open for weeks, so it does not make a period remarkable.
    if not quiet and (recommended := recommendations_section(changes)):
        sections.append(recommended)
    return StoredDigest(
        kind=period.kind,
        period=period.name,
        from_=period.first,
        to=period.last,
        quiet=quiet is not None,
        # Two sections may tell the same fact.
        facts=list({fact.id: fact for section in sections for fact in section.facts}.values()),
        names=_label_rules(log, period, [name for section in sections for name in section.names]),
        sections=[
            SectionText(id=section.id, heading=section.heading, text=section.text) for section in sections
        ],
        leaking=find_leaking(log, period) if any(it.id == LEAKS for it in sections) else [],
    )


def _label_rules(log: DigestLog, period: DigestPeriod, names: list[Name]) -> list[Name]:
    """Return the names, each of a rule with what the log of the period calls the rule, or else its write."""
    ids = {name.value for name in names if name.kind is NameKind.RULE}
    if not ids:
        return names
    listed = ", ".join(map(quote_value, sorted(ids)))
    rows = log.rows(
        "SELECT matchedRule AS id, arg_max(matchedRuleName, timestamp) AS label FROM proxy_logs"  # noqa: S608
        f" WHERE {period.sql} AND matchedRule IN ({listed}) GROUP BY matchedRule"
    )
    labels = {row["id"]: row["label"] for row in rows}
    return [
        msgspec.structs.replace(
            name, label=labels.get(name.value) or name.label if name.kind is NameKind.RULE else None
        )
        for name in names
    ]
