"""What the verdict says of each finding."""

from __future__ import annotations

import datetime as dt
from typing import Any
from uuid import uuid4

import pytest

from accounts.models.history import RevisionKind
from analytics.reports.leaks import Closing
from analytics.watch.verdict import About, Fall, Finding, Restore, VerdictState
from analytics.words.verdict import describe_finding, describe_open, read_verdict

AT = dt.datetime(2026, 11, 25, 9, tzinfo=dt.UTC)
FELL = "Hit rate fell from 42.9% to 7.2%"
ON_MONDAY = f"{FELL} on Monday, 23 November"
SHARED = "Cached results that depend on the user went to several users on Monday, 23 November"
AFTERWARDS = "digests of the days after it no longer show this"
UNFINISHED = "the digests of earlier days are still being made"
AGO = AT - dt.timedelta(minutes=9)


def restored(at: dt.datetime, *, is_untried: bool = False) -> dict[str, Any]:
    """Return the values of a fall after revision 2, which a later one undid."""
    revised_at = dt.datetime(2026, 11, 23, 10, tzinfo=dt.UTC)
    return {"revision": 2, "revised_at": revised_at, "restore": Restore(3, 1, at, is_untried)}


@pytest.mark.parametrize(
    ("about", "values", "text"),
    [
        (About.NO_LOG, {"day": None}, "No log yet"),
        (About.NOTHING, {}, "Healthy"),
        (About.SUMMARISING, {}, "The log of the days up to 2026-11-23 is being summarised"),
        (About.NO_DIGEST, {}, "Not judged yet: there is no digest of Monday, 23 November yet"),
        (About.LOG_LATE, {}, "No log since Monday, 23 November"),
        (
            About.LOG_LATE,
            {"failed": dt.date(2026, 11, 24)},
            "No log was read since Monday, 23 November: the build of Tuesday, 24 November failed",
        ),
        (About.ERRORS, {}, "Requests failed in bursts on Monday, 23 November"),
        (About.LEAKS, {}, SHARED),
        (
            About.LEAKS,
            {"closing": Closing(RevisionKind.RULES, 3)},
            f"{SHARED}, closed by revision 3: {AFTERWARDS}",
        ),
        (
            About.LEAKS,
            {"closing": Closing(RevisionKind.CONFIG, 3)},
            f"{SHARED}, closed by revision 3 of the configuration: {AFTERWARDS}",
        ),
        (
            About.STALE,
            {},
            "Hits were older than a change of a table that they read on Monday, 23 November",
        ),
    ],
)
def test_a_finding(about: About, values: dict[str, Any], text: str) -> None:
    found = {"day": dt.date(2026, 11, 23), **values}
    assert describe_finding(Finding(VerdictState.FINDING, about, **found), at=AT) == text


@pytest.mark.parametrize(
    ("fall", "text"),
    [
        ({}, ON_MONDAY),
        ({"is_over": True}, f"{ON_MONDAY}, and has recovered"),
        (
            {"has_start": False},
            f"{FELL}; since when and why is not known yet, because {UNFINISHED}",
        ),
        ({"revision": 2}, f"{ON_MONDAY} after revision 2"),
        ({"revision": 2, "is_over": True}, f"{ON_MONDAY} after revision 2, and has recovered"),
        (
            {**restored(AGO, is_untried=True)},
            f"{ON_MONDAY} after revision 2; revision 3 restored revision 1, 9 minutes ago; no requests since",
        ),
        (
            {**restored(AGO)},
            f"{ON_MONDAY} after revision 2; revision 3 restored revision 1, 9 minutes ago",
        ),
        (
            {**restored(AT - dt.timedelta(hours=29)), "is_judged_since": True},
            f"{ON_MONDAY} after revision 2, restored 18 hours later, and is still down",
        ),
        (
            {**restored(AT - dt.timedelta(hours=41, minutes=30)), "is_over": True},
            f"{ON_MONDAY} after revision 2, restored 6 hours later",
        ),
    ],
)
def test_a_fall(fall: dict[str, Any], text: str) -> None:
    values: dict[str, Any] = {"is_over": False, **fall}
    finding = Finding(
        VerdictState.HIT_RATE_FELL, About.FALL, dt.date(2026, 11, 23), fall=Fall(42.9, 7.2, **values)
    )
    assert describe_finding(finding, at=AT) == text


@pytest.mark.django_db
def test_the_worst_is_the_verdict() -> None:
    verdict = read_verdict(uuid4())
    assert (verdict.state, verdict.text, verdict.day, verdict.more) == (
        *(VerdictState.NO_LOG_YET, "No log yet", None, []),
    )
    assert (verdict.is_good, verdict.is_bad, verdict.has_digest) == (False, False, False)
    assert describe_open([uuid4()]) == {}
