"""How a thread's priority and the time that it runs at once are lowered."""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from logs.sql import scheduling

if TYPE_CHECKING:
    from collections.abc import Iterator

_SCHED_GETATTR = {"x86_64": 315, "aarch64": 275}
_ATTRIBUTES = struct.Struct("=IIQiIQQQ")


@pytest.fixture
def sleeper() -> Iterator[int]:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    yield process.pid
    process.kill()
    process.wait()


def _nice_and_slice(thread: int) -> tuple[int, int]:
    """The nice value and the slice in nanoseconds."""
    buffer = ctypes.create_string_buffer(_ATTRIBUTES.size)
    number = _SCHED_GETATTR[platform.machine()]
    assert ctypes.CDLL(None).syscall(number, thread, buffer, _ATTRIBUTES.size, 0) == 0
    _, _, _, nice, _, nanoseconds, _, _ = _ATTRIBUTES.unpack(buffer.raw)
    return nice, nanoseconds


def test_a_thread_yields_at_once_to_whatever_wakes(sleeper: int) -> None:
    _, usual = _nice_and_slice(sleeper)
    scheduling.yield_processor(sleeper, nice=7)
    knows_slices = tuple(map(int, platform.release().split(".")[:2])) >= (6, 12)
    assert _nice_and_slice(sleeper) == (7, 100_000_000 if knows_slices else usual)


@pytest.mark.parametrize("number", [None, 0xFFFF], ids=["another architecture", "refused"])
def test_where_the_call_is_missing_the_priority_is_lowered(
    sleeper: int, monkeypatch: pytest.MonkeyPatch, number: int | None
) -> None:
    monkeypatch.setattr(scheduling, "_SCHED_SETATTR", number)
    scheduling.yield_processor(sleeper, nice=7)
    assert os.getpriority(os.PRIO_PROCESS, sleeper) == 7


def test_a_thread_that_is_gone_is_said() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    with pytest.raises(ProcessLookupError):
        scheduling.yield_processor(process.pid, nice=7)
