"""What a killed supervisor leaves behind is ended: asked by the kernel, then killed by the reaper."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

from tenantadmin.run.serve import reaper

DEAF = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("up", flush=True)
time.sleep(60)
"""


def test_a_group_that_does_not_end_is_killed() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", DEAF], stdout=subprocess.PIPE, start_new_session=True
    ) as deaf:
        assert deaf.stdout is not None
        deaf.stdout.readline()
        reaper.reap([deaf.pid], grace=0.1)
        assert deaf.wait() == -signal.SIGKILL


def test_groups_that_are_gone_are_not_waited_for() -> None:
    with subprocess.Popen([sys.executable, "-c", ""], start_new_session=True) as short:
        short.wait()
    begun = time.monotonic()
    reaper.reap([short.pid], grace=60)
    assert time.monotonic() - begun < 30


def test_the_script_spares_everybody_until_its_input_ends() -> None:
    with (
        subprocess.Popen(
            [sys.executable, "-c", DEAF], stdout=subprocess.PIPE, start_new_session=True
        ) as deaf,
        subprocess.Popen(
            [sys.executable, "-I", "-S", reaper.__file__, "0.5"], stdin=subprocess.PIPE
        ) as script,
    ):
        assert deaf.stdout is not None
        deaf.stdout.readline()
        assert script.stdin is not None
        script.stdin.write(f"{deaf.pid}\n".encode())
        script.stdin.flush()
        assert deaf.poll() is None
        script.stdin.close()
        assert deaf.wait() == -signal.SIGKILL
        assert script.wait() == 0
