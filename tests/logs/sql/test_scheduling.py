"""`lower_thread_priority` sets the nice value and the time slice of a thread."""

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
    """Return the nice value, and the slice in nanoseconds."""
    buffer = ctypes.create_string_buffer(_ATTRIBUTES.size)
    number = _SCHED_GETATTR[platform.machine()]
    assert ctypes.CDLL(None).syscall(number, thread, buffer, _ATTRIBUTES.size, 0) == 0
    _, _, _, nice, _, nanoseconds, _, _ = _ATTRIBUTES.unpack(buffer.raw)
    return nice, nanoseconds


def test_nice_value_and_time_slice_are_set(sleeper: int) -> None:
    _, default = _nice_and_slice(sleeper)
    scheduling.lower_thread_priority(sleeper, nice=7)
    has_slices = tuple(map(int, platform.release().split(".")[:2])) >= (6, 12)
    assert _nice_and_slice(sleeper) == (7, 100_000_000 if has_slices else default)


@pytest.mark.parametrize("number", [None, 0xFFFF], ids=["unknown number", "refused call"])
def test_without_the_call_only_the_nice_value_is_set(
    sleeper: int, monkeypatch: pytest.MonkeyPatch, number: int | None
) -> None:
    monkeypatch.setattr(scheduling, "_SCHED_SETATTR", number)
    scheduling.lower_thread_priority(sleeper, nice=7)
    assert os.getpriority(os.PRIO_PROCESS, sleeper) == 7


def test_a_thread_that_has_ended_is_an_error() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    with pytest.raises(ProcessLookupError):
        scheduling.lower_thread_priority(process.pid, nice=7)
