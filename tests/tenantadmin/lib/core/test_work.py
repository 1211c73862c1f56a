"""The deadline of a request."""

from __future__ import annotations

import threading
import time

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


def test_costly_requests_compute_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others of the process would wait for all of them at each step."""
    computing, most = 0, 0
    lock, begin = threading.Lock(), threading.Barrier(4)

    def compute() -> None:
        nonlocal computing, most
        with working(Work(seconds=60)):
            begin.wait()
            for _ in range(30):
                for _ in range(20):
                    check_work()
                with lock:
                    computing += 1
                    most = max(most, computing)
                time.sleep(0.002)
                with lock:
                    computing -= 1

    monkeypatch.setattr(work, "_COSTLY_SECONDS", -1.0)
    monkeypatch.setattr(work, "_LONGEST_WAIT", 10.0)
    threads = [threading.Thread(target=compute) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1


def test_a_costly_request_goes_on_where_the_turn_does_not_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "_COSTLY_SECONDS", -1.0)
    with working(Work(seconds=60)):
        check_work()
        started = time.monotonic()
        with working(Work(seconds=60)):
            check_work()
        assert 0.05 < time.monotonic() - started < 5


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
