"""A process gives memory back to the system after large answers."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import pytest

#: Frees 60 MiB in pieces, between small blocks that stay, and prints how much of it the process keeps.
_SCRIPT = """
import resource
import sys
from pathlib import Path
import pyarrow
from tenantadmin.lib.core.memory import give_memory_back

def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()

if sys.argv[1] == "set":
    give_memory_back()
piece = bytearray(b"x") * (30 << 20)
del piece
before = resident()
pieces, small = [], []
for _ in range(100):
    pieces.append(bytearray(b"x") * (600 << 10))
    small.append(bytearray(600))
most = resident()
del pieces
print(most - before >> 20, resident() - before >> 20, pyarrow.default_memory_pool().backend_name)
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="needs glibc")
def test_freed_blocks_go_back_to_the_system() -> None:
    kept, pools = {}, {}
    for mode in ("set", "default"):
        done = subprocess.run(
            [sys.executable, "-c", _SCRIPT, mode], capture_output=True, text=True, check=True
        )
        most, rest, pools[mode] = done.stdout.split()
        kept[mode] = int(rest)
        assert int(most) >= 55
    assert kept["set"] < 8
    # What glibc does by itself, so that this test shows something.
    assert kept["default"] > 40
    # The others keep what was freed.
    assert pools["set"] == "system"


def test_a_process_whose_objects_are_frozen_ends_without_an_error() -> None:
    program = "import duckdb; from tenantadmin.lib.core.memory import freeze_objects; freeze_objects()"
    ended = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True, timeout=60
    )
    assert (ended.returncode, ended.stderr) == (0, "")
