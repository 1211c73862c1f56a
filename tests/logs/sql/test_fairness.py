"""Slots go round among tenants."""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logs.sql.fairness import FairGate, GateFull, GateTimeout

if TYPE_CHECKING:
    from collections.abc import Callable

_LATER = 60.0


def _enter(gate: FairGate, tenant: str) -> ExitStack:
    stack = ExitStack()
    stack.enter_context(gate.enter(tenant, deadline=time.monotonic() + _LATER))
    return stack


class _Caller(threading.Thread):
    """Waits at the gate, notes its turn, and stays inside until told to leave."""

    def __init__(self, gate: FairGate, tenant: str, turns: list[str]) -> None:
        super().__init__(daemon=True)
        self._gate, self._tenant, self._turns = gate, tenant, turns
        self.inside, self.leave = threading.Event(), threading.Event()

    def run(self) -> None:
        with self._gate.enter(self._tenant, deadline=time.monotonic() + _LATER):
            self._turns.append(self._tenant)
            self.inside.set()
            self.leave.wait(_LATER)


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _LATER
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0)


def test_a_full_gate_times_out() -> None:
    gate = FairGate(slots=1, per_tenant=1, queue=99)
    with _enter(gate, "a"), pytest.raises(GateTimeout), gate.enter("b", deadline=time.monotonic()):
        pass
    assert gate.inside == 0


def test_a_full_queue_turns_away_at_once_and_one_tenant_fills_half_of_it() -> None:
    gate = FairGate(slots=1, per_tenant=1, queue=4)
    with _enter(gate, "a"):
        callers = [_Caller(gate, tenant, []) for tenant in ("a", "a", "b")]
        for caller in callers:
            caller.start()
        _until(lambda: gate.waiting == 3)
        with pytest.raises(GateFull), gate.enter("a", deadline=time.monotonic() + _LATER):
            pass
        last = _Caller(gate, "c", [])
        last.start()
        _until(lambda: gate.waiting == 4)
        with pytest.raises(GateFull), gate.enter("d", deadline=time.monotonic() + _LATER):
            pass
        assert gate.waiting == 4
    for caller in (*callers, last):
        caller.leave.set()
    for caller in (*callers, last):
        caller.join()
    assert (gate.inside, gate.waiting) == (0, 0)


def test_no_queue_still_lets_in_where_there_is_room() -> None:
    gate = FairGate(slots=1, per_tenant=1, queue=0)
    with _enter(gate, "a"), pytest.raises(GateFull), gate.enter("b", deadline=time.monotonic() + _LATER):
        pass
    with _enter(gate, "b"):
        assert gate.inside == 1


def test_one_tenant_leaves_room_for_others() -> None:
    gate = FairGate(slots=3, per_tenant=2, queue=99)
    with _enter(gate, "a"), _enter(gate, "a"):
        with pytest.raises(GateTimeout), gate.enter("a", deadline=time.monotonic()):
            pass
        with _enter(gate, "b"):
            assert gate.inside == 3


def test_a_free_slot_goes_to_the_tenant_with_the_fewest_inside() -> None:
    gate = FairGate(slots=2, per_tenant=2, queue=99)
    turns: list[str] = []
    first, second = _enter(gate, "a"), _enter(gate, "a")
    waiting = []
    for tenant in ("a", "a", "b"):
        caller = _Caller(gate, tenant, turns)
        caller.start()
        waiting.append(caller)
        _until(lambda: gate.waiting == len(waiting))
    first.close()
    waiting[2].inside.wait(_LATER)
    assert turns == ["b"]
    second.close()
    waiting[0].inside.wait(_LATER)
    assert turns == ["b", "a"]
    for caller in waiting:
        caller.leave.set()
    for caller in waiting:
        caller.join(_LATER)
    assert turns == ["b", "a", "a"]
    assert (gate.inside, gate.waiting) == (0, 0)


def test_a_caller_that_gives_up_loses_its_place_alone() -> None:
    gate = FairGate(slots=1, per_tenant=1, queue=99)
    holder = _enter(gate, "a")
    with pytest.raises(GateTimeout), gate.enter("b", deadline=time.monotonic()):
        pass
    turns: list[str] = []
    caller = _Caller(gate, "b", turns)
    caller.start()
    _until(lambda: gate.waiting == 1)
    holder.close()
    caller.inside.wait(_LATER)
    caller.leave.set()
    caller.join(_LATER)
    assert (turns, gate.inside) == (["b"], 0)


@settings(max_examples=20)
@given(st.integers(1, 3), st.integers(1, 3), st.lists(st.sampled_from("abc"), max_size=12))
def test_everyone_gets_in_and_no_limit_is_passed(slots: int, per_tenant: int, tenants: list[str]) -> None:
    gate = FairGate(slots=slots, per_tenant=per_tenant, queue=99)
    lock = threading.Lock()
    inside: list[str] = []
    seen: list[tuple[int, int]] = []

    def visit(tenant: str) -> None:
        with gate.enter(tenant, deadline=time.monotonic() + _LATER):
            with lock:
                inside.append(tenant)
                seen.append((len(inside), inside.count(tenant)))
            time.sleep(0)
            with lock:
                inside.remove(tenant)

    threads = [threading.Thread(target=visit, args=(tenant,)) for tenant in tenants]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(_LATER)
    assert len(seen) == len(tenants)
    assert all(total <= slots and own <= per_tenant for total, own in seen)
    assert gate.inside == 0
