"""`FairSemaphore`: its limits, and the order in which tenants get slots."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import ExitStack

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logs.sql.engines.local import FairSemaphore, QueueFull, SlotTimeout

_LATER = 60.0


def _hold_slot(semaphore: FairSemaphore, tenant: str) -> ExitStack:
    stack = ExitStack()
    stack.enter_context(semaphore.slot(tenant, deadline=time.monotonic() + _LATER))
    return stack


class _Caller(threading.Thread):
    """Waits for a slot, appends its tenant to ``turns``, and holds the slot until ``release`` is set."""

    def __init__(self, semaphore: FairSemaphore, tenant: str, turns: list[str]) -> None:
        super().__init__(daemon=True)
        self._semaphore, self._tenant, self._turns = semaphore, tenant, turns
        self.has_slot, self.release = threading.Event(), threading.Event()

    def run(self) -> None:
        with self._semaphore.slot(self._tenant, deadline=time.monotonic() + _LATER):
            self._turns.append(self._tenant)
            self.has_slot.set()
            self.release.wait(_LATER)


def _wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _LATER
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0)


def test_waiting_for_a_slot_times_out() -> None:
    semaphore = FairSemaphore(slots=1, per_tenant=1, queue=99)
    with (
        _hold_slot(semaphore, "a"),
        pytest.raises(SlotTimeout),
        semaphore.slot("b", deadline=time.monotonic()),
    ):
        pass
    assert semaphore.holding == 0


def test_a_full_queue_refuses_callers_and_one_tenant_can_fill_half_of_it() -> None:
    semaphore = FairSemaphore(slots=1, per_tenant=1, queue=4)
    with _hold_slot(semaphore, "a"):
        callers = [_Caller(semaphore, tenant, []) for tenant in ("a", "a", "b")]
        for caller in callers:
            caller.start()
        _wait_until(lambda: semaphore.waiting == 3)
        with pytest.raises(QueueFull), semaphore.slot("a", deadline=time.monotonic() + _LATER):
            pass
        last = _Caller(semaphore, "c", [])
        last.start()
        _wait_until(lambda: semaphore.waiting == 4)
        with pytest.raises(QueueFull), semaphore.slot("d", deadline=time.monotonic() + _LATER):
            pass
        assert semaphore.waiting == 4
    for caller in (*callers, last):
        caller.release.set()
    for caller in (*callers, last):
        caller.join()
    assert (semaphore.holding, semaphore.waiting) == (0, 0)


def test_free_slots_can_be_used_without_a_queue() -> None:
    semaphore = FairSemaphore(slots=1, per_tenant=1, queue=0)
    with (
        _hold_slot(semaphore, "a"),
        pytest.raises(QueueFull),
        semaphore.slot("b", deadline=time.monotonic() + _LATER),
    ):
        pass
    with _hold_slot(semaphore, "b"):
        assert semaphore.holding == 1


def test_one_tenant_cannot_hold_all_slots() -> None:
    semaphore = FairSemaphore(slots=3, per_tenant=2, queue=99)
    with _hold_slot(semaphore, "a"), _hold_slot(semaphore, "a"):
        with pytest.raises(SlotTimeout), semaphore.slot("a", deadline=time.monotonic()):
            pass
        with _hold_slot(semaphore, "b"):
            assert semaphore.holding == 3


def test_a_free_slot_goes_to_the_tenant_that_holds_the_fewest() -> None:
    semaphore = FairSemaphore(slots=2, per_tenant=2, queue=99)
    turns: list[str] = []
    first, second = _hold_slot(semaphore, "a"), _hold_slot(semaphore, "a")
    waiting = []
    for tenant in ("a", "a", "b"):
        caller = _Caller(semaphore, tenant, turns)
        caller.start()
        waiting.append(caller)
        _wait_until(lambda: semaphore.waiting == len(waiting))
    first.close()
    waiting[2].has_slot.wait(_LATER)
    assert turns == ["b"]
    second.close()
    waiting[0].has_slot.wait(_LATER)
    assert turns == ["b", "a"]
    for caller in waiting:
        caller.release.set()
    for caller in waiting:
        caller.join(_LATER)
    assert turns == ["b", "a", "a"]
    assert (semaphore.holding, semaphore.waiting) == (0, 0)


def test_a_timeout_does_not_affect_other_callers() -> None:
    semaphore = FairSemaphore(slots=1, per_tenant=1, queue=99)
    holder = _hold_slot(semaphore, "a")
    with pytest.raises(SlotTimeout), semaphore.slot("b", deadline=time.monotonic()):
        pass
    turns: list[str] = []
    caller = _Caller(semaphore, "b", turns)
    caller.start()
    _wait_until(lambda: semaphore.waiting == 1)
    holder.close()
    caller.has_slot.wait(_LATER)
    caller.release.set()
    caller.join(_LATER)
    assert (turns, semaphore.holding) == (["b"], 0)


@settings(max_examples=20)
@given(st.integers(1, 3), st.integers(1, 3), st.lists(st.sampled_from("abc"), max_size=12))
def test_every_caller_gets_a_slot_and_no_limit_is_exceeded(
    slots: int, per_tenant: int, tenants: list[str]
) -> None:
    semaphore = FairSemaphore(slots=slots, per_tenant=per_tenant, queue=99)
    lock = threading.Lock()
    holding: list[str] = []
    counts: list[tuple[int, int]] = []

    def hold(tenant: str) -> None:
        with semaphore.slot(tenant, deadline=time.monotonic() + _LATER):
            with lock:
                holding.append(tenant)
                counts.append((len(holding), holding.count(tenant)))
            time.sleep(0)
            with lock:
                holding.remove(tenant)

    threads = [threading.Thread(target=hold, args=(tenant,)) for tenant in tenants]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(_LATER)
    assert len(counts) == len(tenants)
    assert all(total <= slots and own <= per_tenant for total, own in counts)
    assert semaphore.holding == 0
