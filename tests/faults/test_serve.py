"""`manage.py serve` as a person meets it: real processes, killed and stopped."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.ports import reserved_port

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


class Service:
    """A running `manage.py serve` on a `var` directory of its own."""

    def __init__(self, var_dir: Path, *, port: int) -> None:
        self.var_dir = var_dir
        self.url = f"http://127.0.0.1:{port}"
        environment = {
            name: value
            for name, value in os.environ.items()
            if name not in {"DATABASE_URL", "REDIS_URL", "OBJECT_STORE_URL", "PUBLIC_BASE_URL"}
        }
        self.process = subprocess.Popen(
            [sys.executable, "manage.py", "serve"],
            cwd=ROOT,
            env={
                **environment,
                "VAR_DIR": str(var_dir),
                "PORT": str(port),
                "DJANGO_SETTINGS_MODULE": "tenantadmin.settings",
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.lines: list[str] = []

    def read_until(self, pattern: str) -> None:
        """Read the output up to a line that matches `pattern`."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line)
            if re.search(pattern, line):
                return
        pytest.fail(f"no line matched {pattern!r} in:\n{''.join(self.lines)}")

    def wait(self) -> int:
        """Read the rest of the output and return the exit code."""
        assert self.process.stdout is not None
        self.lines += self.process.stdout.readlines()
        self.process.stdout.close()
        return self.process.wait(timeout=30)

    def pid_of(self, name: str) -> int:
        """Return the pid of the last start."""
        text = "".join(self.lines)
        found = re.findall(rf"{name} (?:started|runs) \(pid=(\d+)\)", text)
        assert found, text
        return int(found[-1])

    def wait_until_ready(self) -> None:
        self.read_until("The service answers at")
        if not any("ready." in line for line in self.lines):
            self.read_until(r"celery@.* ready\.")

    def check_answers(self) -> None:
        with urllib.request.urlopen(self.url) as answer:  # noqa: S310 - our own
            assert answer.status == 200

    def left_behind(self) -> list[str]:
        return left_behind(self.var_dir)


def left_behind(var_dir: Path) -> list[str]:
    """The command lines of processes that still name the `var` directory, or work in it."""
    deadline = time.monotonic() + 30
    while (left := _processes(var_dir)) and time.monotonic() < deadline:
        psutil.wait_procs(left, timeout=0.1)
    return [" ".join(process.cmdline()) for process in left]


def _processes(var_dir: Path) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("VAR_DIR") == str(var_dir) or str(var_dir) in process.cwd():
                found.append(process)
        except (psutil.Error, OSError):
            continue
    return found


@pytest.fixture
def free_port() -> Iterator[int]:
    with reserved_port() as port:
        yield port


@pytest.fixture(scope="module")
def var_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Shared by the tests of this file: every one begins where another was stopped or killed."""
    return tmp_path_factory.mktemp("serve")


@pytest.fixture
def service(var_dir: Path, free_port: int) -> Iterator[Service]:
    service = Service(var_dir, port=free_port)
    yield service
    if service.process.poll() is None:
        service.process.terminate()
        service.process.communicate(timeout=30)


def test_a_killed_process_starts_again_while_web_answers(service: Service) -> None:
    service.wait_until_ready()
    web = service.pid_of("web")
    for name in ("worker", "beat", "Redis", "PostgreSQL"):
        os.kill(service.pid_of(name), signal.SIGKILL)
        service.read_until(rf"{name} was killed by signal 9 \(SIGKILL\)\. It starts again in 1 s\.")
        service.check_answers()
        service.read_until(rf"{name} (started|runs) \(pid=")
    assert service.pid_of("web") == web
    os.kill(web, signal.SIGKILL)
    service.read_until(r"web started")
    service.read_until("Started worker-2")
    service.check_answers()
    service.process.send_signal(signal.SIGINT)
    assert service.wait() == 0
    assert not [line for line in service.lines if "Traceback" in line or "CRITICAL" in line]
    assert service.left_behind() == []


@pytest.mark.parametrize("name", ["web", "PostgreSQL", "Redis"])
def test_a_process_that_ends_while_the_service_starts_stops_it(service: Service, name: str) -> None:
    service.read_until(rf"{name} (started|runs) \(pid=")
    os.kill(service.pid_of(name), signal.SIGKILL)
    assert service.wait() == 1
    sentence = f"{name} was killed by signal 9 (SIGKILL), so everything else was stopped."
    assert sentence in service.lines[-1]
    assert sum("was killed by signal" in line for line in service.lines) == 2
    assert service.left_behind() == []


def test_a_killed_web_worker_is_replaced_and_told_to_stop_nothing_is_left_behind(service: Service) -> None:
    service.wait_until_ready()
    service.check_answers()
    worker = psutil.Process(service.pid_of("web")).children()[-1]
    worker.kill()
    service.read_until("Unexpected exit from worker-")
    service.read_until(r"Spawning worker-")
    service.check_answers()
    service.process.send_signal(signal.SIGINT)
    assert service.wait() == 0
    assert service.left_behind() == []


def test_a_stop_after_the_output_was_closed_leaves_nothing_behind(service: Service) -> None:
    assert service.process.stdout is not None
    service.read_until(r"Redis runs \(pid=")
    service.process.stdout.close()
    service.process.send_signal(signal.SIGINT)
    assert service.process.wait(timeout=30) == 0
    assert service.left_behind() == []


def supervise(
    commands: dict[str, list[str]],
    *,
    var_dir: Path,
    stdout: Any = subprocess.PIPE,
    on_start: str = "stopping.wait()",
    later: str = "",
) -> subprocess.CompletedProcess[str]:
    """Run `commands` under a supervisor of their own, without the reaper; print what it returns."""
    program = (
        "import os; from tenantadmin.run.serve import supervisor; supervisor.STOP_SECONDS = 0.5; "
        "supervisor.AGAIN_SECONDS = (0.1, 60.0); supervisor._REPEAT_SECONDS = (0.5, 60.0); "
        "supervisor._REAPER = ('sh', '-c', 'cat > /dev/null'); "
        f"run = supervisor.Supervisor({commands!r}, env=os.environ).run; "
        f"print(run(servers=[], on_start=lambda stopping: {on_start}, later={later.split()}))"
    )
    return subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env={**os.environ, "VAR_DIR": str(var_dir)},
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(("on_start", "error"), [("None", "No space left"), ("1 / 0", "ZeroDivisionError")])
def test_a_supervisor_that_fails_itself_leaves_nothing_behind(
    on_start: str, error: str, tmp_path: Path
) -> None:
    commands = {"one": ["sleep", "600"], "two": ["sleep", "600"]}
    with Path("/dev/full" if on_start == "None" else os.devnull).open("w") as stdout:
        ended = supervise(commands, var_dir=tmp_path, stdout=stdout, on_start=on_start)
    assert ended.returncode != 0
    assert error in ended.stderr
    assert left_behind(tmp_path) == []


def test_a_later_process_starts_after_the_announcement_which_is_repeated_below_it(tmp_path: Path) -> None:
    commands = {"one": ["sleep", "600"], "two": ["sh", "-c", "echo up; sleep 2; kill -INT $PPID; sleep 600"]}
    ended = supervise(commands, var_dir=tmp_path, on_start="'Ready\\n'", later="two")
    said = re.findall(r"Ready|\w+ started|two +\| up|SIGINT received", ended.stdout)
    assert said == ["one started", "Ready", "two started", "two    | up", "Ready", "SIGINT received"]
    assert left_behind(tmp_path) == []


def test_a_process_that_ends_again_and_again_starts_after_longer_and_longer(tmp_path: Path) -> None:
    starts = tmp_path / "starts"
    script = f"echo x >> {starts}; test $(wc -l < {starts}) -lt 4 || kill -INT $PPID; exit 3"
    ended = supervise({"one": ["sh", "-c", script]}, var_dir=tmp_path, on_start="''", later="one")
    assert re.findall(r"one ended with exit code 3\. It starts again in (\S+) s\.", ended.stdout)[:3] == [
        "0.1",
        "0.2",
        "0.4",
    ]
    assert ended.stdout.endswith("\nNone\n")
    assert left_behind(tmp_path) == []


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_every_process(signum: signal.Signals, tmp_path: Path) -> None:
    commands = {"one": ["sh", "-c", f"kill -{signum} $PPID; exec sleep 600"], "two": ["sleep", "600"]}
    ended = supervise(commands, var_dir=tmp_path)
    assert f"| {signum.name} received\n" in ended.stdout
    assert sorted(re.findall(r"\w+ stopped .*", ended.stdout)) == [
        "one stopped (rc=-15)",
        "two stopped (rc=-15)",
    ]
    assert ended.stdout.endswith("\nNone\n")
    assert left_behind(tmp_path) == []


def test_a_process_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    ignore = "signal.signal(signal.SIGTERM, signal.SIG_IGN)"
    deaf = f"{sys.executable} -c 'import signal, time; {ignore}; print(flush=True); time.sleep(600)'"
    # It tells the other one that it is ready.
    fifo = tmp_path / "ready"
    os.mkfifo(fifo)
    commands = {"deaf": ["sh", "-c", f"exec {deaf} > {fifo}"], "brief": ["sh", "-c", f"read line < {fifo}"]}
    ended = supervise(commands, var_dir=tmp_path)
    assert re.findall(r"sending SIGKILL to (\w+)", ended.stdout) == ["deaf"]
    assert "deaf stopped (rc=-9)" in ended.stdout
    assert ended.stdout.endswith("\nbrief ended with exit code 0\n")
    assert left_behind(tmp_path) == []


def test_children_of_a_process_end_with_it(tmp_path: Path) -> None:
    ended = supervise({"one": ["sh", "-c", "sleep 600 & exit 3"]}, var_dir=tmp_path)
    assert ended.stdout.endswith("\none ended with exit code 3\n")
    assert left_behind(tmp_path) == []


def test_control_characters_of_a_process_do_not_reach_the_terminal(tmp_path: Path) -> None:
    command = ["printf", r"a\tb \033]0;pwned\007 \303\274 \377\n\n"]
    ended = supervise({"one": command}, var_dir=tmp_path)
    said = re.findall(r" one +\| (.*)\n", ended.stdout)
    assert said == [r"a       b \x1b]0;pwned\x07 ü �", ""]


def test_on_a_terminal_each_process_has_a_colour(tmp_path: Path) -> None:
    terminal, stdout = os.openpty()
    # The first to end waits for the other, which would else be stopped before it writes.
    fifo = tmp_path / "written"
    os.mkfifo(fifo)
    commands = {
        "one": ["sh", "-c", f"echo first; read line < {fifo}"],
        "longer name": ["sh", "-c", f"echo second; echo > {fifo}; sleep 600"],
    }
    supervise(commands, var_dir=tmp_path, stdout=stdout)
    os.close(stdout)
    text = read_all(terminal)
    time_of_day = r"\d\d:\d\d:\d\d"
    assert re.search(rf"\033\[36m{time_of_day} one         \| \033\[0mfirst\r\n", text)
    assert re.search(rf"\033\[33m{time_of_day} longer name \| \033\[0msecond\r\n", text)
    assert re.search(rf"^{time_of_day} system      \| one stopped \(rc=0\)\r$", text, re.MULTILINE)


def read_all(terminal: int) -> str:
    """Read to the end, because the kernel passes on in parts what was written, and close the terminal."""
    parts = []
    with contextlib.suppress(OSError):
        while part := os.read(terminal, 10_000):
            parts.append(part)
    os.close(terminal)
    return b"".join(parts).decode()


def test_a_killed_supervisor_leaves_nothing_behind(service: Service) -> None:
    service.wait_until_ready()
    service.process.kill()
    assert service.wait() == -signal.SIGKILL
    assert service.left_behind() == []


def test_a_port_in_use_is_one_sentence(var_dir: Path, free_port: int) -> None:
    with socket.create_server(("127.0.0.1", free_port)):
        service = Service(var_dir, port=free_port)
        assert service.wait() == 1
    assert "".join(service.lines) == (
        f"CommandError: Port {free_port} on 127.0.0.1 is in use. "
        "Stop the process that uses it, or choose another port with PORT=8001.\n"
    )
