"""The verdict on a tenant: what was found, in one sentence each."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Final
from uuid import UUID

from msgspec import Meta

from analytics.watch.verdict import About, Fall, Finding, Restore, VerdictState, find_restores, read_findings
from tenantadmin.lib.core.formats import ago, apart, day_in_words, percent
from tenantadmin.lib.core.structs import JsonStruct
from tenantadmin.lib.core.timestamps import now

if TYPE_CHECKING:
    from analytics.models import TenantHealth


class VerdictSentence(JsonStruct, kw_only=False):
    """One thing that was found."""

    state: VerdictState
    text: Annotated[str, Meta(description="Without a full stop.")]
    day: Annotated[dt.date | None, Meta(description="The day that the sentence is about, or the log's last.")]

    @property
    def is_good(self) -> bool:
        return self.state is VerdictState.HEALTHY

    @property
    def is_bad(self) -> bool:
        return self.state in {VerdictState.HIT_RATE_FELL, VerdictState.FINDING, VerdictState.LOG_LATE}

    @property
    def has_digest(self) -> bool:
        """True if the digest of ``day`` says more."""
        return self.state in _WITH_DIGEST


_WITH_DIGEST: Final = frozenset(
    {
        *(VerdictState.HIT_RATE_FELL, VerdictState.HIT_RATE_RECOVERED),
        *(VerdictState.FINDING, VerdictState.FINDING_CLOSED),
    }
)


class Verdict(VerdictSentence, kw_only=False):
    """How a tenant is: the worst that was found."""

    more: Annotated[list[VerdictSentence], Meta(description="What else was found, the worst first.")]
    advice: Annotated[
        str | None, Meta(description="What is recommended now, for people to read. Absent if nothing is.")
    ] = None


def read_verdict(tenant_id: UUID) -> Verdict:
    """Return how a tenant is."""
    at = now()
    worst, *more = (_render(finding, at=at) for finding in read_findings([tenant_id], at=at)[tenant_id])
    return Verdict(worst.state, worst.text, worst.day, more)


def describe_open(tenants: Iterable[UUID]) -> Mapping[UUID, Sequence[VerdictSentence]]:
    """Return the sentences about the open findings of tenants that have some, the worst first."""
    at = now()
    found = {
        tenant: [_render(finding, at=at) for finding in findings if finding.is_open]
        for tenant, findings in read_findings(tenants, at=at).items()
    }
    return {tenant: sentences for tenant, sentences in found.items() if sentences}


def describe_restores(health: Iterable[TenantHealth], *, since: dt.datetime) -> Mapping[UUID, str]:
    """Describe the last restore of the rules of tenants, for those with one, in at most two queries."""
    restores = find_restores(health, since=since)
    return {tenant: _describe_restore(restore, at=now()) for tenant, restore in restores.items()}


def _render(finding: Finding, *, at: dt.datetime) -> VerdictSentence:
    return VerdictSentence(finding.state, describe_finding(finding, at=at), finding.day)


_ON_A_DAY: Final = {
    About.NO_DIGEST: "Not judged yet: there is no digest of {day} yet",
    About.ERRORS: "Requests failed in bursts on {day}",
    About.LEAKS: "Cached results that depend on the user went to several users on {day}",
    About.STALE: "Hits were older than a change of a table that they read on {day}",
}


def describe_finding(finding: Finding, *, at: dt.datetime) -> str:
    """Return the sentence about a finding, without a full stop."""
    if finding.day is None or finding.about is About.NOTHING:
        return "No log yet" if finding.about is About.NO_LOG else "Healthy"
    if finding.about is About.SUMMARISING:
        return f"The log of the days up to {finding.day} is being summarised"
    day = day_in_words(finding.day, at.date())
    if finding.fall is not None:
        return _describe_fall(finding.fall, day, at=at)
    if finding.about is About.LOG_LATE:
        if finding.failed is None:
            return f"No log since {day}"
        failed = day_in_words(finding.failed, at.date())
        return f"No log was read since {day}: the build of {failed} failed"
    text = _ON_A_DAY[finding.about].format(day=day)
    if finding.closing is None:
        return text
    return f"{text}, closed by {finding.closing}: digests of the days after it no longer show this"


_UNFINISHED: Final = "the digests of earlier days are still being made"


def _describe_fall(fall: Fall, day: str, *, at: dt.datetime) -> str:
    text = f"Hit rate fell from {percent(fall.usual / 100)} to {percent(fall.rate / 100)}"
    if not fall.has_start:
        return f"{text}; since when and why is not known yet, because {_UNFINISHED}"
    text += f" on {day}"
    if fall.revision is not None:
        text += f" after revision {fall.revision}"
    restore = fall.restore
    if restore is None:
        return f"{text}, and has recovered" if fall.is_over else text
    if not fall.is_over and not fall.is_judged_since:
        return f"{text}; {_describe_restore(restore, at=at)}"
    text += f", restored {apart(fall.revised_at or restore.at, restore.at) or 'a moment'} later"
    return text if fall.is_over else f"{text}, and is still down"


def _describe_restore(restore: Restore, *, at: dt.datetime) -> str:
    """Describe which revision restored which, and if the log ends before."""
    # Without the comma, "revision 1 4 minutes ago" reads as 14.
    text = f"revision {restore.seq} restored revision {restore.restored_from}, {ago(restore.at, now=at)}"
    return f"{text}; no requests since" if restore.is_untried else text
