"""How a tenant is, in a sentence for each finding of its digests, the worst first.

Staff pages and the dashboard show it first. It reads rows alone: neither the log nor the object store.
"""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Final

from django.db.models import F
from msgspec import Meta

from accounts.models import Revision
from accounts.models.history import RevisionAction, RevisionKind
from analytics.models import Digest, TenantHealth
from tenantadmin.lib.core.formats import duration, percent
from tenantadmin.lib.core.structs import JsonStruct
from tenantadmin.lib.core.timestamps import now

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from uuid import UUID

#: A fall of the hit rate is told for this many days after it ended.
_DAYS: Final = 7
#: A smaller fall against the usual rate, in points, is noise. Digests call it unusual too.
_POINTS: Final = 5.0
_REVISION: Final = re.compile(r"revision (\d+) ")
#: What the last digest found, by its section, the worst first.
_FINDINGS: Final = (
    ("errors", "Requests failed in bursts"),
    ("leaks", "Cached results that depend on the user went to several users"),
    ("stale", "Hits were older than a change of a table that they read"),
)


class VerdictState(StrEnum):
    """How a tenant is. What is found is told in this order, the worst first."""

    NO_LOG_YET = "no-log-yet"
    LOG_LATE = "log-late"
    HIT_RATE_FELL = "hit-rate-fell"
    FINDING = "finding"
    NOT_JUDGED_YET = "not-judged-yet"
    HIT_RATE_RECOVERED = "hit-rate-recovered"
    HEALTHY = "healthy"


STATES: Final = [state.value for state in VerdictState]


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
        return self.state in {VerdictState.LOG_LATE, VerdictState.HIT_RATE_FELL, VerdictState.FINDING}

    @property
    def has_digest(self) -> bool:
        """True if the digest of ``day`` says more."""
        return self.state in {
            VerdictState.HIT_RATE_FELL,
            VerdictState.HIT_RATE_RECOVERED,
            VerdictState.FINDING,
        }


class Verdict(VerdictSentence, kw_only=False):
    """How a tenant is: the worst that was found."""

    more: Annotated[list[VerdictSentence], Meta(description="What else was found, the worst first.")]


@dataclass(frozen=True, slots=True)
class _Fall:
    """A day whose hit rate was lower than usual. Rates in percent."""

    day: dt.date
    usual: float
    rate: float
    document: Mapping[str, Any]


def read_verdict(tenant_id: UUID) -> Verdict:
    """Return how a tenant is, in at most four queries."""
    health = TenantHealth.objects.filter(pk=tenant_id).only("last_day").first()
    last_day = health.last_day if health else None
    if last_day is None:
        return Verdict(VerdictState.NO_LOG_YET, "No log yet", None, [])
    found = sorted(_find_all(tenant_id, last_day), key=lambda it: STATES.index(it.state))
    worst, *more = found or [VerdictSentence(VerdictState.HEALTHY, "Healthy", last_day)]
    return Verdict(worst.state, worst.text, worst.day, more)


def _find_all(tenant_id: UUID, last_day: dt.date) -> Iterator[VerdictSentence]:
    """Yield what can be said of a log that ends with ``last_day``, apart from that all is well."""
    today = now().date()
    yesterday = today - dt.timedelta(days=1)
    digests = list(
        Digest.objects.filter(
            tenant_id=tenant_id, last_day__gt=last_day - dt.timedelta(days=2 * _DAYS), first_day=F("last_day")
        ).order_by("-last_day")
    )
    if last_day < yesterday:
        yield VerdictSentence(VerdictState.LOG_LATE, f"No log since {_name(last_day, today)}", last_day)
    elif last_day == yesterday and not (digests and digests[0].last_day == yesterday):
        text = f"Not judged yet: there is no digest of {_name(yesterday, today)} yet"
        yield VerdictSentence(VerdictState.NOT_JUDGED_YET, text, yesterday)
    if falls := _last_falls(digests, since=last_day - dt.timedelta(days=_DAYS - 1)):
        worst = max(falls, key=lambda fall: (fall.usual - fall.rate, fall.day))
        yield _describe(tenant_id, worst, today, is_over=_has_recovered(digests[0]))
    if digests:
        sections = {section["id"] for section in digests[0].document["sections"]}
        day = digests[0].last_day
        for section, text in _FINDINGS:
            if section in sections:
                yield VerdictSentence(VerdictState.FINDING, f"{text} on {_name(day, today)}", day)


def _last_falls(digests: Sequence[Digest], *, since: dt.date) -> list[_Fall]:
    """Return the falls since a day, the newest first, each with the days on which it began."""
    falls: list[_Fall] = []
    for fall in filter(None, map(_fall_of, digests)):
        if fall.day >= since or (falls and falls[-1].day - fall.day == dt.timedelta(days=1)):
            falls.append(fall)
    return falls


def _rates_of(digest: Digest) -> tuple[float | None, float | None]:
    """Return the hit rate of a digest and the usual one, in percent."""
    facts = {fact["id"]: fact["value"] for fact in digest.document["facts"]}
    return facts.get("hit-rate"), facts.get("hit-rate-median")


def _has_recovered(digest: Digest) -> bool:
    """Return True if the last digest has its usual hit rate. On weekends the usual one may be small."""
    rate, usual = _rates_of(digest)
    return _fall_of(digest) is None and not (rate is not None and usual and rate < usual / 2)


def _fall_of(digest: Digest) -> _Fall | None:
    rate, usual = _rates_of(digest)
    if rate is None or usual is None or usual - rate < _POINTS:
        return None
    return _Fall(digest.last_day, usual, rate, digest.document)


def _describe(tenant_id: UUID, fall: _Fall, today: dt.date, *, is_over: bool) -> VerdictSentence:
    usual, rate = percent(fall.usual / 100), percent(fall.rate / 100)
    text = f"Hit rate fell from {usual} to {rate} on {_name(fall.day, today)}"
    cause = _find_cause(fall.document)
    restored = None
    if cause is not None:
        text += f" after revision {cause}"
        restored = _restored_after(tenant_id, cause)
    if restored is not None:
        text += f", restored {duration(restored / dt.timedelta(milliseconds=1))} later"
    elif is_over:
        text += ", and has recovered"
    is_bad = restored is None and not is_over
    state = VerdictState.HIT_RATE_FELL if is_bad else VerdictState.HIT_RATE_RECOVERED
    return VerdictSentence(state, text, fall.day)


def _find_cause(document: Mapping[str, Any]) -> int | None:
    """Return the revision with which the digest says that a fall coincides, the clearest fall first."""
    for name in document["names"]:
        if name["id"].startswith(("moved-", "burst-")) and name["kind"] == "revision":
            match = _REVISION.match(name["value"])
            if match:
                return int(match[1])
    return None


def _restored_after(tenant_id: UUID, seq: int) -> dt.timedelta | None:
    """Return how long after a revision of the rules an earlier one was restored, or None."""
    history = Revision.objects.filter(kind=RevisionKind.RULES, tenant_id=tenant_id)
    cause = history.filter(seq=seq).values_list("changed_at", flat=True).first()
    restored = history.filter(seq__gt=seq, action=RevisionAction.RESTORE, restored_from__lt=seq)
    at = restored.order_by("seq").values_list("changed_at", flat=True).first()
    return None if cause is None or at is None else at - cause


def _name(day: dt.date, today: dt.date) -> str:
    """Return the day of the week of one of the last six days, or the date."""
    return f"{day:%A}" if 0 <= (today - day).days < _DAYS else day.isoformat()
