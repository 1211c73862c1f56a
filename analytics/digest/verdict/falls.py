"""Falls of the hit rate: find the worst one in recent digests, and tell its cause and its end."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from analytics.digest.facts import FELL, has_fallen, revision_of
from analytics.digest.verdict.restores import find_restore, tell_restore
from analytics.digest.verdict.sentences import VerdictSentence, VerdictState
from tenantadmin.lib.core.formats import apart, day_in_words, percent
from tenantadmin.lib.core.timestamps import days_before

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from accounts.models import Revision
    from analytics.models import Digest

#: A fall of the hit rate is told for this many days after it ended.
TOLD_DAYS: Final = 7
#: Digests are made the newest first. This long after one, an earlier one may still be on its way.
_MAKING: Final = dt.timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class _FallenDay:
    """A day whose hit rate was lower than usual. Rates in percent."""

    day: dt.date
    usual: float
    rate: float
    document: Mapping[str, Any]

    @property
    def depth(self) -> float:
        return self.usual - self.rate


@dataclass(slots=True)
class _Fall:
    """The time from a day whose hit rate fell until one whose hit rate is as usual again."""

    #: The newest first. Between them are only days without a log, or with too few requests to judge.
    days: list[_FallenDay]
    is_over: bool
    #: The last judged day before it, if it was read.
    before: dt.date | None = None

    @property
    def depth(self) -> float:
        return max(day.depth for day in self.days)

    @property
    def start(self) -> _FallenDay:
        """The first day that fell half as deep as the deepest, or that coincides with a revision."""
        return next(
            day
            for day in reversed(self.days)
            if 2 * day.depth >= self.depth or _find_cause(day.document) is not None
        )

    @property
    def state(self) -> VerdictState:
        return VerdictState.HIT_RATE_RECOVERED if self.is_over else VerdictState.HIT_RATE_FELL


def tell_worst_fall(
    digests: Sequence[Digest],
    history: Sequence[Revision],
    *,
    last_day: dt.date,
    pending: dt.date | None,
    at: dt.datetime,
) -> Iterator[VerdictSentence]:
    """Tell the worst fall of the last days, if there is one.

    Args:
        digests: the newest first.
        last_day: the last summarised day of the log.
        pending: the last day that is not summarised yet.
    """
    falls = _last_falls(digests, since=days_before(last_day, TOLD_DAYS - 1))
    if falls:
        worst = max(falls, key=lambda fall: (not fall.is_over, fall.depth, fall.start.day))
        if worst.before is None and digests[-1].made_at > at - _MAKING:
            text = _describe_unfinished(worst)
        else:
            logged = max(last_day, pending or last_day)
            text = _describe(history, worst, at=at, judged=digests[0].last_day, logged=logged)
        yield VerdictSentence(worst.state, text, worst.start.day)


def find_fallen_day(digest: Digest) -> _FallenDay | None:
    """Return the day of a digest if its hit rate fell."""
    facts = _facts_of(digest)
    rate, usual = facts.get("hit-rate"), facts.get("hit-rate-median")
    if rate is None or usual is None or not has_fallen(facts):
        return None
    return _FallenDay(digest.last_day, usual, rate, digest.document)


def _last_falls(digests: Sequence[Digest], *, since: dt.date) -> list[_Fall]:
    """Return the falls that lasted until ``since`` or longer, the newest first. So are the digests."""
    falls: list[_Fall] = []
    is_over, current = False, None
    for digest in digests:
        if day := find_fallen_day(digest):
            if current is None:
                current = _Fall([], is_over)
                falls.append(current)
            current.days.append(day)
        elif _has_usual_rate(digest):
            if current is not None:
                current.before = digest.last_day
            is_over, current = True, None
    return [fall for fall in falls if fall.days[0].day >= since]


def _has_usual_rate(digest: Digest) -> bool:
    """Return True if a day that did not fall has its usual hit rate, which may be small on weekends."""
    facts = _facts_of(digest)
    rate, usual = facts.get("hit-rate"), facts.get("hit-rate-median")
    return rate is not None and bool(usual) and 2 * rate >= (usual or 0)


def _facts_of(digest: Digest) -> dict[str, float | None]:
    return {fact["id"]: fact["value"] for fact in digest.document["facts"]}


def _describe_unfinished(fall: _Fall) -> str:
    """Tell a fall that may have begun on an earlier day, whose digest is not made yet."""
    return (
        f"Hit rate fell from {percent(fall.start.usual / 100)} to {percent(fall.start.rate / 100)}; "
        "since when and why is not known yet, because the digests of earlier days are still being made"
    )


def _describe(
    history: Sequence[Revision], fall: _Fall, *, at: dt.datetime, judged: dt.date, logged: dt.date
) -> str:
    """Tell a fall. ``judged`` is the day of the last digest, ``logged`` the last day with a log."""
    start = fall.start
    usual, rate = percent(start.usual / 100), percent(start.rate / 100)
    text = f"Hit rate fell from {usual} to {rate} on {day_in_words(start.day, at.date())}"
    seq = _find_cause(start.document)
    if seq is None:
        seq = _last_write_between(history, fall.before, start.day)
    if seq is not None:
        text += f" after revision {seq}"
    cause = next((it for it in history if it.seq == seq), None)
    restore = find_restore(history, cause)
    if cause is not None and restore is not None and (fall.is_over or judged > restore.changed_at.date()):
        text += f", restored {apart(cause.changed_at, restore.changed_at) or 'a moment'} later"
        if not fall.is_over:
            text += ", and is still down"
    elif restore is not None:
        text += f"; {tell_restore(restore, logged, at=at)}"
    elif fall.is_over:
        text += ", and has recovered"
    return text


def _find_cause(document: Mapping[str, Any]) -> int | None:
    """Return the revision with which the digest says that a fall coincides, the clearest fall first."""
    for name in document["names"]:
        seq = revision_of(name)
        if seq is not None and name["id"].startswith((f"{FELL}-", "moved-", "burst-")):
            return seq
    return None


def _last_write_between(history: Sequence[Revision], before: dt.date | None, day: dt.date) -> int | None:
    """Return the last revision between two days. The digests of both know the writes of their own days."""
    if before is None:
        return None
    written = [it.seq for it in history if before < it.changed_at.date() < day]
    return written[-1] if written else None
