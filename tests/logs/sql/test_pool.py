"""The pool of query processes: isolation, replacement, priorities and cleanup."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from logs.sql.engines.local import LocalEngine
from logs.sql.engines.pool import PoolBroken, ProcessPool
from logs.sql.protocol import Limits, LogSource, QueryInterrupted
from logs.sql.wire import ProcessLimits

_EMPTY = LogSource("empty", ())
_LIMITS = ProcessLimits(seconds=15, memory_bytes=1 << 30, threads=2)


def _servers() -> set[int]:
    """Return the ids of the fork servers that this process started."""
    found = set()
    for child in psutil.Process().children():
        # One of another test may end meanwhile.
        with contextlib.suppress(psutil.Error):
            if "logs.sql" in " ".join(child.cmdline()):
                found.add(child.pid)
    return found


def _has_ended(pid: int) -> bool:
    """Return True if nothing of a child process is left but its exit code."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def _wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


@pytest.fixture
def pool() -> Iterator[ProcessPool]:
    pool = ProcessPool(warm=1, limits=_LIMITS)
    yield pool
    pool.close()


def test_a_process_inherits_nothing_from_the_service(
    pool: ProcessPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DJANGO_SECRET_KEY", "secret-of-the-service")
    with Path(__file__).open() as file:
        os.set_inheritable(file.fileno(), True)
        process = pool.take()
        process_info = psutil.Process(process.pid)
        if os.geteuid() != 0:
            # When it is ready, only root can read its environment; its own user cannot.
            _wait_until(lambda: not _can_read_environment(process_info))
            process.end()
            return
        assert "DJANGO_SECRET_KEY" not in process_info.environ()
        assert process_info.cwd() == "/"
        _wait_until(lambda: _open_files(process.pid) == ["/dev/null", "/dev/null", "/dev/null", "socket"])
        process.end()


def _can_read_environment(process: psutil.Process) -> bool:
    try:
        process.environ()
    except psutil.AccessDenied:
        return False
    return True


def _open_files(pid: int) -> list[str]:
    """Return the open files of a process: paths, or the kind of those without a path."""
    try:
        targets = [str(link.readlink()) for link in Path(f"/proc/{pid}/fd").iterdir()]
    except FileNotFoundError:  # it was closed in the meantime
        return []
    return sorted(target.partition(":")[0] for target in targets)


def test_each_process_is_taken_only_once(pool: ProcessPool) -> None:
    processes = [pool.take() for _ in range(4)]
    assert len({process.pid for process in processes}) == 4
    for process in processes:
        process.end()
    _wait_until(lambda: not any(psutil.pid_exists(process.pid) for process in processes))


def test_the_priority_of_all_threads_of_a_process_is_lowered(pool: ProcessPool) -> None:
    process = pool.take()
    assert os.getsid(process.pid) == os.getsid(0)
    threads = [int(thread.name) for thread in Path(f"/proc/{process.pid}/task").iterdir()]
    process.lower_priority(15)
    assert {os.getpriority(os.PRIO_PROCESS, thread) for thread in threads} == {15}
    process.end()
    process.lower_priority(19)


def test_a_paused_process_is_stopped_until_it_is_resumed(pool: ProcessPool) -> None:
    process = pool.take()
    process_info = psutil.Process(process.pid)
    process.pause()
    _wait_until(lambda: process_info.status() == psutil.STATUS_STOPPED)
    process.resume()
    _wait_until(lambda: process_info.status() == psutil.STATUS_SLEEPING)
    process.pause()
    process.end()
    _wait_until(lambda: not psutil.pid_exists(process.pid))


def test_used_seconds_is_the_processor_time_of_the_process(pool: ProcessPool) -> None:
    process = pool.take()
    process_info = psutil.Process(process.pid)
    _wait_until(lambda: process_info.status() == psutil.STATUS_SLEEPING)
    times = process_info.cpu_times()
    # psutil counts hundredths of a second.
    assert process.used_seconds() == pytest.approx(times.user + times.system, abs=0.02)
    process.end()
    _wait_until(lambda: not psutil.pid_exists(process.pid))
    assert process.used_seconds() == 0


def test_the_kernel_kills_query_processes_first_when_memory_runs_out(pool: ProcessPool) -> None:
    process = pool.take()
    score = Path(f"/proc/{process.pid}/oom_score_adj")
    _wait_until(lambda: score.read_text() == "1000\n")
    process.end()


def test_other_limits_need_a_new_process(pool: ProcessPool) -> None:
    pool.take().end()
    _wait_until(lambda: pool.ready == 1)
    idle = pool.idle_pids()
    process = pool.take(limits=dataclasses.replace(_LIMITS, memory_bytes=64 << 20))
    assert process.pid not in idle
    assert pool.idle_pids() == idle
    process.end()


def test_processes_that_were_taken_are_replaced() -> None:
    pool = ProcessPool(warm=4, limits=_LIMITS)
    try:
        for _ in range(2):
            pool.take().end()
            _wait_until(lambda: pool.ready == 4)
    finally:
        pool.close()


def test_an_idle_process_that_died_is_not_taken(pool: ProcessPool) -> None:
    pool.take().end()
    _wait_until(lambda: pool.ready == 1)
    (idle,) = pool.idle_pids()
    os.kill(idle, signal.SIGKILL)
    _wait_until(lambda: not psutil.pid_exists(idle))
    process = pool.take()
    assert process.pid != idle
    process.end()


def test_the_priority_of_a_long_query_is_lowered() -> None:
    before = _servers()
    engine = LocalEngine(slots=1, per_tenant=1, queue=1, warm=1, default_limits=Limits())

    def busy() -> list[psutil.Process]:
        (server,) = _servers() - before
        # Idle processes do not end, so none disappears while this reads them.
        return [child for child in psutil.Process(server).children() if sum(child.cpu_times()[:2]) > 0.2]

    try:
        with ThreadPoolExecutor(1) as caller:
            endless = "SELECT sum(hash(i)) FROM range(1000000000000) t(i)"
            running = caller.submit(
                engine.execute, source=_EMPTY, statement=endless, limits=Limits(seconds=120)
            )
            _wait_until(lambda: engine.running == 1 and len(_servers() - before) == 1)
            _wait_until(lambda: any(process.nice() >= 10 for process in busy()))
            (process,) = busy()
            process.kill()
            with pytest.raises(QueryInterrupted):
                running.result()
    finally:
        engine.close()


def test_a_killed_fork_server_is_replaced() -> None:
    before = _servers()
    engine = LocalEngine(slots=1, per_tenant=1, queue=24, warm=2, default_limits=Limits())
    try:
        engine.execute(source=_EMPTY, statement="SELECT 1", limits=Limits())
        (server,) = _servers() - before
        os.kill(server, signal.SIGKILL)
        _wait_until(lambda: _has_ended(server))
        result = engine.execute(source=_EMPTY, statement="SELECT 2", limits=Limits())
        assert result.row_count == 1
    finally:
        engine.close()


def test_close_ends_all_processes() -> None:
    before = _servers()
    pool = ProcessPool(warm=2, limits=_LIMITS)
    taken = pool.take()
    _wait_until(lambda: pool.ready == 2)
    pids = {taken.pid, *pool.idle_pids(), *(_servers() - before)}
    assert len(pids) == 4
    pool.close()
    _wait_until(lambda: not any(psutil.pid_exists(pid) for pid in pids))
    os.close(taken.pidfd)
    taken.channel.close()
    with pytest.raises(PoolBroken):
        pool.take()


def test_a_forked_service_process_starts_with_an_empty_pool(pool: ProcessPool) -> None:
    pool.take().end()
    _wait_until(lambda: pool.ready == 1)
    before = pool.idle_pids()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            process = pool.take()
            status = 0 if process.pid not in before else 2
            process.end()
            pool.close()
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert pool.idle_pids() == before
    pool.take().end()


def test_query_processes_end_with_a_killed_service() -> None:
    root = Path(__file__).resolve().parents[3]
    code = (
        f"import sys, time; sys.path.insert(0, {str(root)!r})\n"
        "from logs.sql.engines.pool import ProcessPool\n"
        "from logs.sql.wire import ProcessLimits\n"
        "limits = ProcessLimits(seconds=15, memory_bytes=1 << 30, threads=2)\n"
        "pool = ProcessPool(warm=2, limits=limits)\n"
        "process = pool.take()\n"
        "print(process.pid, pool._server.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as service:
        try:
            assert service.stdout is not None
            pids = [int(pid) for pid in service.stdout.readline().split()]
            assert all(psutil.pid_exists(pid) for pid in pids)
        finally:
            service.kill()
    _wait_until(lambda: not any(psutil.pid_exists(pid) for pid in pids))
