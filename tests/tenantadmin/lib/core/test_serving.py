"""The deadline of a request."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator

import pytest

from tenantadmin.lib.core import serving
from tenantadmin.lib.core.serving import CallerGone, TooCostly, Work, check_work, note_arrival, working


class Clock:
    """The clocks of the module: what computes or sleeps moves them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.elapsed = 1_000.0
        self.used = 10.0
        self.pauses: list[float] = []
        for name, function in (
            ("monotonic", lambda: self.elapsed),
            ("thread_time", lambda: self.used),
            ("sleep", self._sleep),
        ):
            monkeypatch.setattr(serving, name, function)

    def compute(self, seconds: float) -> None:
        self.elapsed += seconds
        self.used += seconds

    def _sleep(self, seconds: float) -> None:
        self.elapsed += seconds
        self.pauses.append(round(seconds, 6))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    yield Clock(monkeypatch)
    serving._process.arrived_at = -math.inf


def test_the_used_time_is_read_at_the_first_question_and_every_two_milliseconds(clock: Clock) -> None:
    request = Work(seconds=0.0035)
    with working(request):
        for _ in range(2):
            check_work()
            clock.compute(0.0019)
        clock.compute(0.0002)
        with pytest.raises(TooCostly):
            check_work()
    assert request.has_used(0.0039)
    assert not request.has_used(0.0041)


def test_a_costly_request_gives_way_to_each_request_that_arrives(clock: Clock) -> None:
    with working(Work(seconds=60)):
        clock.compute(0.011)
        check_work()
        clock.compute(0.003)
        check_work()
        assert clock.pauses == [0.0005]
        note_arrival()
        check_work()
        clock.compute(0.003)
        check_work()
        assert clock.pauses == [0.0005, 0.0005, 0.0015]


def test_a_very_costly_request_rests_as_long_as_it_computes(clock: Clock) -> None:
    with working(Work(seconds=60)):
        clock.compute(0.49)
        for _ in range(3):
            check_work()
            clock.compute(0.006)
        check_work()
    assert clock.pauses == [0.0005, 0.002, 0.0005, 0.002, 0.0005]


def test_it_gives_way_to_requests_that_arrive_meanwhile_but_not_for_ever(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sleep(seconds: float) -> None:
        clock.elapsed += seconds - 0.001
        note_arrival()
        clock.elapsed += 0.001

    monkeypatch.setattr(serving, "sleep", sleep)
    with working(Work(seconds=60)):
        clock.compute(0.011)
        note_arrival()
        started = clock.elapsed
        check_work()
        assert clock.elapsed - started == pytest.approx(0.02)


def test_a_request_that_is_not_costly_does_not_pause(clock: Clock) -> None:
    with working(Work(seconds=60)):
        for _ in range(3):
            clock.compute(0.003)
            note_arrival()
            check_work()
    assert clock.pauses == []


def test_costly_requests_compute_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others of the process would wait for all of them at each step."""
    computing, most = 0, 0
    lock, begin = threading.Lock(), threading.Barrier(4)

    def compute() -> None:
        nonlocal computing, most
        with working(Work(seconds=60)):
            begin.wait()
            for _ in range(30):
                check_work()
                with lock:
                    computing += 1
                    most = max(most, computing)
                time.sleep(0.002)
                with lock:
                    computing -= 1

    monkeypatch.setattr(serving, "_COSTLY_SECONDS", -1.0)
    monkeypatch.setattr(serving, "_LONGEST_WAIT", 10.0)
    monkeypatch.setattr(serving, "_LOOK_SECONDS", 0.0)
    threads = [threading.Thread(target=compute) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1


def test_a_costly_request_goes_on_where_the_turn_does_not_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "_COSTLY_SECONDS", -1.0)
    with working(Work(seconds=60)):
        check_work()
        started = time.monotonic()
        with working(Work(seconds=60)):
            check_work()
        assert 0.05 < time.monotonic() - started < 5


def test_outside_of_a_request_there_is_no_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "thread_time", lambda: 1e9)
    for _ in range(50):
        check_work()


def test_work_ends_when_the_caller_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "_LOOK_SECONDS", 0.0)
    gone = iter([False, True])
    with working(Work(is_abandoned=lambda: next(gone))):
        check_work()
        with pytest.raises(CallerGone):
            check_work()
