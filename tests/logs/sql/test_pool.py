"""Query processes: where they come from, and that none stays."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from logs.sql.errors import QueryFailed
from logs.sql.local import LocalEngine
from logs.sql.pool import PoolBroken, ProcessPool
from logs.sql.protocol import Limits, LogSource
from logs.sql.wire import Preparation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_NOTHING = LogSource("nobody", ())
_USUAL = Preparation(seconds=15, memory_bytes=1 << 30, threads=2)


def _servers() -> set[int]:
    """The ids of the servers of query processes that this process started."""
    return {child.pid for child in psutil.Process().children() if "logs.sql" in " ".join(child.cmdline())}


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


@pytest.fixture
def pool() -> Iterator[ProcessPool]:
    pool = ProcessPool(warm=1, preparation=_USUAL)
    yield pool
    pool.close()


def test_a_process_has_nothing_of_the_service(pool: ProcessPool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DJANGO_SECRET_KEY", "secret-of-the-service")
    with (Path(__file__)).open() as held:
        os.set_inheritable(held.fileno(), True)
        process = pool.take()
        here = psutil.Process(process.pid)
        if os.geteuid() != 0:
            # Once it is ready, it is closed to its own user, this test included: root alone can look.
            _until(lambda: not _may_look_into(here))
            process.end()
            return
        assert "DJANGO_SECRET_KEY" not in here.environ()
        assert here.cwd() == "/"
        # Once it has made itself ready.
        _until(lambda: _open_files(process.pid) == ["/dev/null", "/dev/null", "/dev/null", "socket"])
        process.end()


def _may_look_into(process: psutil.Process) -> bool:
    try:
        process.environ()
    except psutil.AccessDenied:
        return False
    return True


def _open_files(pid: int) -> list[str]:
    """What the process has open: paths, and the kind of what has none."""
    try:
        targets = [str(link.readlink()) for link in Path(f"/proc/{pid}/fd").iterdir()]
    except FileNotFoundError:  # closed meanwhile
        return []
    return sorted(target.partition(":")[0] for target in targets)


def test_each_process_is_handed_out_once_and_replaced(pool: ProcessPool) -> None:
    processes = [pool.take() for _ in range(4)]
    assert len({process.pid for process in processes}) == 4
    for process in processes:
        process.end()
    _until(lambda: not any(psutil.pid_exists(process.pid) for process in processes))


def test_a_process_that_had_its_share_yields_with_all_its_threads(pool: ProcessPool) -> None:
    process = pool.take()
    assert os.getsid(process.pid) == os.getsid(0)
    threads = [int(thread.name) for thread in Path(f"/proc/{process.pid}/task").iterdir()]
    process.lower_priority(15)
    assert {os.getpriority(os.PRIO_PROCESS, thread) for thread in threads} == {15}
    process.lower_priority(None)
    assert {os.sched_getscheduler(thread) for thread in threads} == {os.SCHED_IDLE}
    process.end()
    process.lower_priority(None)


def test_a_paused_process_stands_still_until_it_is_resumed(pool: ProcessPool) -> None:
    process = pool.take()
    here = psutil.Process(process.pid)
    process.pause()
    _until(lambda: here.status() == psutil.STATUS_STOPPED)
    process.resume()
    _until(lambda: here.status() == psutil.STATUS_SLEEPING)
    process.pause()
    process.end()
    _until(lambda: not psutil.pid_exists(process.pid))


def test_a_process_tells_what_processor_time_it_has_used(pool: ProcessPool) -> None:
    process = pool.take()
    here = psutil.Process(process.pid)
    _until(lambda: here.status() == psutil.STATUS_SLEEPING)
    times = here.cpu_times()
    # psutil counts in hundredths.
    assert process.used_seconds() == pytest.approx(times.user + times.system, abs=0.02)
    process.end()
    _until(lambda: not psutil.pid_exists(process.pid))
    assert process.used_seconds() == 0


def test_a_process_is_the_first_to_go_when_memory_runs_out(pool: ProcessPool) -> None:
    process = pool.take()
    score = Path(f"/proc/{process.pid}/oom_score_adj")
    _until(lambda: score.read_text() == "1000\n")
    process.end()


def test_another_preparation_takes_no_waiting_process(pool: ProcessPool) -> None:
    pool.take().end()
    _until(lambda: pool.ready == 1)
    waiting = pool.waiting_pids()
    process = pool.take(preparation=dataclasses.replace(_USUAL, memory_bytes=64 << 20))
    assert process.pid not in waiting
    assert pool.waiting_pids() == waiting
    process.end()


def test_refill_replaces_what_was_taken() -> None:
    pool = ProcessPool(warm=4, preparation=_USUAL)
    try:
        pool.take().end()
        _until(lambda: pool.ready == 4)
        pool.take().end()
        pool.refill()
        _until(lambda: pool.ready == 4)
    finally:
        pool.close()


def test_a_process_that_died_while_it_waited_is_not_handed_out(pool: ProcessPool) -> None:
    pool.take().end()
    _until(lambda: pool.ready == 1)
    (idle,) = pool.waiting_pids()
    os.kill(idle, signal.SIGKILL)
    _until(lambda: not psutil.pid_exists(idle))
    process = pool.take()
    assert process.pid != idle
    process.end()


def test_a_query_that_computes_for_long_yields_to_younger_ones() -> None:
    before = _servers()
    engine = LocalEngine(slots=1, per_tenant=1, queue=1, warm=1, usual=Limits())

    def lowest() -> tuple[int, int]:
        (server,) = _servers() - before
        # All of a pool's processes live until they are taken, so none vanishes in between.
        found = [(process.nice(), process.pid) for process in psutil.Process(server).children()]
        return max(found, default=(0, 0))

    try:
        with ThreadPoolExecutor(1) as caller:
            bomb = "SELECT sum(hash(i)) FROM range(1000000000000) t(i)"
            running = caller.submit(
                engine.execute, source=_NOTHING, statement=bomb, limits=Limits(seconds=120)
            )
            _until(lambda: engine.running == 1 and len(_servers() - before) == 1)
            _until(lambda: lowest()[0] >= 10)
            os.kill(lowest()[1], signal.SIGKILL)
            with pytest.raises(QueryFailed):
                running.result()
    finally:
        engine.close()


def test_a_killed_server_is_replaced() -> None:
    before = _servers()
    engine = LocalEngine(slots=1, per_tenant=1, queue=24, warm=2, usual=Limits())
    try:
        engine.execute(source=_NOTHING, statement="SELECT 1", limits=Limits())
        (server,) = _servers() - before
        os.kill(server, signal.SIGKILL)
        _until(lambda: psutil.Process(server).status() == psutil.STATUS_ZOMBIE)
        result = engine.execute(source=_NOTHING, statement="SELECT 2", limits=Limits())
        assert result.row_count == 1
    finally:
        engine.close()


def test_closing_leaves_no_process() -> None:
    before = _servers()
    pool = ProcessPool(warm=2, preparation=_USUAL)
    taken = pool.take()
    _until(lambda: pool.ready == 2)
    mine = {taken.pid, *pool.waiting_pids(), *(_servers() - before)}
    assert len(mine) == 4
    pool.close()
    _until(lambda: not any(psutil.pid_exists(pid) for pid in mine))
    os.close(taken.handle)
    taken.channel.close()
    with pytest.raises(PoolBroken):
        pool.take()


def test_a_forked_service_has_a_pool_of_its_own(pool: ProcessPool) -> None:
    pool.take().end()
    _until(lambda: pool.ready == 1)
    before = pool.waiting_pids()
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
    assert pool.waiting_pids() == before
    pool.take().end()


def test_a_service_killed_outright_leaves_no_process() -> None:
    root = Path(__file__).resolve().parents[3]
    code = (
        f"import sys, time; sys.path.insert(0, {str(root)!r})\n"
        "from logs.sql.pool import ProcessPool\n"
        "from logs.sql.wire import Preparation\n"
        "usual = Preparation(seconds=15, memory_bytes=1 << 30, threads=2)\n"
        "pool = ProcessPool(warm=2, preparation=usual)\n"
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
    _until(lambda: not any(psutil.pid_exists(pid) for pid in pids))
