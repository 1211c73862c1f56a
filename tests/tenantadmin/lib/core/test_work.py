"""The deadline of a request."""

from __future__ import annotations

import pytest

from tenantadmin.lib.core import work
from tenantadmin.lib.core.work import CallerGone, TooCostly, Work, check_work, working


def test_the_clock_is_read_at_the_first_question_and_at_every_twentieth(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    readings = iter([100.0, 101.0, 102.0, 102.5])
    monkeypatch.setattr(work, "thread_time", lambda: next(readings))
    request = Work(seconds=1.5)
    with working(request):
        for _ in range(20):
            check_work()
        with pytest.raises(TooCostly):
            check_work()
    assert list(readings) == [102.5]


def test_outside_of_a_request_there_is_no_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "thread_time", lambda: 1e9)
    for _ in range(50):
        check_work()


def test_work_ends_when_the_caller_is_gone() -> None:
    gone = iter([False, True])
    with working(Work(is_abandoned=lambda: next(gone))):
        for _ in range(20):
            check_work()
        with pytest.raises(CallerGone):
            check_work()
