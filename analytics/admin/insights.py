"""Data of the insights pages: recommendations with their changes, digests with their SQL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from accounts.dashboard import in_dashboard
from analytics.advice.edits import apply_edits, read_edits
from analytics.advice.effects import list_effects
from analytics.advice.mining import read_mining
from analytics.advice.outdated import find_outdated, is_outdated
from analytics.advice.recommendations import list_recommendations
from analytics.advice.wording import say_possible
from analytics.digest.facts import NameKind, revision_of, show_facts
from analytics.digest.rendering import as_html_sections
from analytics.digest.stored import list_periods, read_digest
from analytics.digest.verdict.leaks import find_closing_of_all
from analytics.models import Mining, Recommendation
from rules.admin.text import diff_lines
from rules.diff import diff_rules
from rules.ruleset import read_ruleset

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from uuid import UUID

    from analytics.digest.rendering import ShownSection
    from analytics.models import Digest, Effect
    from analytics.reports.leaks import Closing

_UNDER_WAY: Final = (Mining.State.QUEUED, Mining.State.RUNNING)
#: Number of earlier digests that a page offers.
_DIGESTS: Final = 60


def is_searching(mining: Mining | None) -> bool:
    """Return True while a search for recommendations is queued or running."""
    return mining is not None and mining.state in _UNDER_WAY


@dataclass(frozen=True, slots=True)
class Advice:
    """Recommendations of a tenant, each with its effect if it was measured. ``earlier`` counts the others."""

    mining: Mining | None
    shown: Sequence[tuple[Recommendation, Effect | None]]
    undecided: int
    earlier: int
    #: What all that is undecided could save.
    possible: str | None
    #: The ids of the undecided ones that change other rules than the current ones.
    outdated: Collection[UUID]


def read_advice(tenant_id: UUID, *, is_decided: bool) -> Advice:
    """Return the decided or the undecided recommendations of a tenant."""
    recommendations = list_recommendations(tenant_id=tenant_id)
    undecided = [row for row in recommendations if row.state in Recommendation.UNDECIDED]
    outdated = find_outdated(undecided)
    shown = [row for row in recommendations if row not in undecided] if is_decided else undecided
    effects = list_effects(row.pk for row in shown)
    return Advice(
        mining=read_mining(tenant_id=tenant_id),
        shown=[(row, effects.get(row.pk)) for row in shown],
        undecided=len(undecided),
        earlier=len(recommendations) - len(undecided),
        possible=say_possible(undecided, outdated),
        outdated=outdated,
    )


def diff_recommendation(recommendation: Recommendation) -> dict[str, Any] | None:
    """Return what accepting would change, in words and as lines; None if the rules were written since.

    Raises:
        TenantNotFound: there is no such live tenant.
    """
    current = read_ruleset(recommendation.tenant_id)
    if is_outdated(recommendation, current):
        return None
    after = apply_edits(current.rules, read_edits(recommendation.patch))
    return {
        "diff": diff_rules(before=current.rules, after=after),
        "lines": diff_lines(current.rules, after),
    }


@dataclass(frozen=True, slots=True)
class DigestPage:
    """One digest (None if the tenant has none), and the periods of the others.

    ``facts`` are its numbers as JSON with their SQL, each with the text that shows it.
    """

    periods: Sequence[str]
    digest: Digest | None = None
    sections: Sequence[ShownSection] = ()
    facts: Sequence[tuple[dict[str, Any], str]] = ()
    #: The revision that closed the leaks.
    closed_by: Closing | None = None


def read_digest_page(tenant_id: UUID, *, period: str) -> DigestPage:
    """Return the digest of a period, or the newest if ``period`` is empty.

    Raises:
        DigestNotFound: there is no digest of this period.
    """
    periods = list_periods(tenant=tenant_id, most=_DIGESTS)
    if not period and not periods:
        return DigestPage(periods)
    digest = read_digest(tenant=tenant_id, period=period or periods[0])

    def link_name(name: Mapping[str, Any]) -> str | None:
        if revision := revision_of(name):
            return in_dashboard(tenant_id, "history", kind="rules", seq=revision)
        if name["kind"] == NameKind.RULE:
            return in_dashboard(tenant_id, "rules", rule=name["value"])
        if name["kind"] != NameKind.STATEMENT:
            return None
        days = (digest.last_day - digest.first_day).days + 1
        wanted = {"day": digest.last_day, "days": days, "statement": name["value"][:1000]}
        return in_dashboard(tenant_id, "statements", **wanted)

    sections = as_html_sections(
        digest.document,
        digest.texts,
        link_fact=lambda fact: f"#sql-{fact['id']}",
        link_name=link_name,
    )
    texts = show_facts(digest.document)
    facts = [(fact, texts[fact["id"]]) for fact in digest.document["facts"]]
    return DigestPage(periods, digest, sections, facts, find_closing_of_all([digest]))
