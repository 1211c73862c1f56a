"""Shared by the benchmarks: servers, requests over kept connections, times of works in turn, tables."""

from __future__ import annotations

import contextlib
import http.client
import importlib
import multiprocessing
import os
import socket
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

import django
import psutil
from rich.console import Console
from rich.table import Table

from tenantadmin.conf.secrets import new_secret_key, new_signing_key
from tenantadmin.lib.core.memory import give_memory_back
from tenantadmin.run import embedded
from tenantadmin.run.serve.address import Address
from tenantadmin.run.serve.web import web_command

ROOT = Path(__file__).resolve().parent.parent
console = Console(width=110)


@contextlib.contextmanager
def environment() -> Iterator[Path]:
    """Start PostgreSQL and Redis, set up Django as in production, migrate. Yield a temporary directory."""
    with (
        tempfile.TemporaryDirectory(prefix="ta-bench-", ignore_cleanup_errors=True) as name,
        embedded.running(Path(name), durable=False),
    ):
        directory = Path(name)
        endpoints = embedded.endpoints(directory)
        (directory / "static").mkdir()
        (directory / "bare").mkdir()
        os.environ.update(
            VAR_DIR=str(directory),
            DATABASE_URL=endpoints.database_url,
            REDIS_URL=endpoints.redis_url,
            DJANGO_DEBUG="0",
            DJANGO_SECRET_KEY=new_secret_key(),
            JWT_PRIVATE_KEY=new_signing_key(),
            PUBLIC_BASE_URL="http://127.0.0.1",
            EMAIL_URL="",
            STAFF_SECOND_FACTOR="false",
            DJANGO_SETTINGS_MODULE="bench.settings",
            BENCH_BARE_DIR=str(directory / "bare"),
            LOG_LEVEL="WARNING",
            TENANTADMIN_SUPERVISED="1",
        )
        from django.core.management import call_command  # noqa: PLC0415

        django.setup()
        call_command("migrate", verbosity=0)
        yield directory


# Requests ----------------------------------------------------------------------------------------


@contextlib.contextmanager
def granian(*, workers: int = 1, threads: int = 4) -> Iterator[int]:
    """Serve the application as in production. Yield the port."""
    port = free_port()
    command = web_command(Address("127.0.0.1", port), workers=workers)
    variables = {**os.environ, "WEB_THREADS": str(threads)}
    server = subprocess.Popen(command, cwd=ROOT, env=variables, stdout=subprocess.DEVNULL)
    try:
        wait_for(port, server)
        yield port
    finally:
        server.terminate()
        server.wait(20)


def free_port() -> int:
    """Return a port on which no server listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_for(port: int, server: subprocess.Popen[bytes]) -> None:
    """Wait until a server answers.

    Raises:
        RuntimeError: it has ended, or does not answer within 30 s.
    """
    for _ in range(300):
        if server.poll() is not None:
            raise RuntimeError(f"granian ended with {server.returncode}")
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.1)
    raise RuntimeError("granian does not answer")


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: bytes
    etag: str


class Caller:
    """An API client with a token and one kept connection, for one thread."""

    def __init__(self, port: int, token: str = "") -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self._headers = {"Content-Type": "application/json"}
        if token:
            self.authorize(token)

    def authorize(self, token: str) -> None:
        """Send an access token from now on."""
        self._headers["Authorization"] = f"Bearer {token}"

    def send(self, method: str, path: str, body: str | None = None) -> Answer:
        self._connection.request(method, path, body, self._headers)
        answer = self._connection.getresponse()
        return Answer(answer.status, answer.read(), answer.headers.get("ETag", ""))

    def close(self) -> None:
        """Close the connection. The next request opens another."""
        self._connection.close()

    def get(self, path: str) -> Answer:
        """Raises RuntimeError if the status is not 200."""
        answer = self.send("GET", path)
        if answer.status != 200:
            raise RuntimeError(f"{path} answered {answer.status}: {answer.body[:300]!r}")
        return answer


def measure_rate(port: int, path: str, *, seconds: int, status: int = 200, **headers: str) -> float:
    """Return the GET requests per second over four kept connections, each in a process of its own."""
    lines = [f"GET {path} HTTP/1.1", "Host: 127.0.0.1"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    request = ("\r\n".join(lines) + "\r\n\r\n").encode()
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        pool.starmap(_send, [(port, request, status, 0.5)] * 4)  # warm up
        return sum(pool.starmap(_send, [(port, request, status, seconds)] * 4)) / seconds


def _send(port: int, request: bytes, status: int, seconds: float) -> int:
    """Send a request again and again, each as soon as the last is answered. Return how often."""
    count = 0
    expected = f"HTTP/1.1 {status} ".encode()
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        reader = connection.makefile("rb")
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            connection.sendall(request)
            first = reader.readline()
            if not first.startswith(expected):
                raise RuntimeError(f"answered {first!r} to {request[:80]!r}")
            length = 0
            while (line := reader.readline()) != b"\r\n":
                if line.lower().startswith(b"content-length:"):
                    length = int(line[15:])
            reader.read(length)
            count += 1
    return count


# Times and tables --------------------------------------------------------------------------------


def time_of(work: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    """Return what one call takes, in ms."""
    start = clock()
    work()
    return (clock() - start) * 1000


def times_in_turn(
    *works: Callable[[], object], runs: int, clock: Callable[[], float] = time.perf_counter
) -> list[list[float]]:
    """Return the times of each work in ms. The works run in turn, so that other load slows all of them."""
    rounds = [[time_of(work, clock) for work in works] for _ in range(runs)]
    return [list(times) for times in zip(*rounds, strict=True)]


def medians_in_turn(
    *works: Callable[[], object], runs: int, clock: Callable[[], float] = time.perf_counter
) -> list[float]:
    """As `times_in_turn`; return the median of each work."""
    return [statistics.median(times) for times in times_in_turn(*works, runs=runs, clock=clock)]


def p95(times: Sequence[float]) -> float:
    return statistics.quantiles(times, n=20, method="inclusive")[-1]


@dataclass(frozen=True, slots=True)
class Compared:
    """A figure beside the practical limit of the same run, and the ratio that is the goal."""

    work: str
    figure: float
    beside: str
    limit: float
    goal: float | None = None


def show(title: str, unit: str, rows: Sequence[Compared]) -> None:
    """Print a table of figures and ratios."""
    table = Table(title=title, title_justify="left")
    for name in ("work", unit, "beside", unit, "ratio", "goal"):
        table.add_column(name, justify="right" if name in (unit, "ratio", "goal") else "left")
    for row in rows:
        table.add_row(
            row.work,
            f"{row.figure:,.2f}",
            row.beside,
            f"{row.limit:,.2f}",
            f"{row.figure / row.limit:,.2f}",
            "" if row.goal is None else f"{row.goal:g}",
        )
    console.print(table)


# Works in processes of their own -------------------------------------------------------------------


def measure_apart(module: str, function: str, *arguments: object, seconds: int) -> Sequence[str]:
    """Call a function in a new process, as in a child of a worker.

    Return seconds, processor time, and the MB at the peak and afterwards, as texts; what went wrong if it
    failed or took longer than ``seconds``.
    """
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_call, args=(sender, module, function, arguments))
    process.start()
    sender.close()
    try:
        if not receiver.poll(seconds):
            return [f"> {seconds}"]
        return [f"{figure:,.1f}" for figure in receiver.recv()]
    except EOFError:
        return ["failed"]
    finally:
        process.kill()
        process.join()


def _call(sender: Connection, module: str, function: str, arguments: tuple[object, ...]) -> None:
    django.setup()
    give_memory_back()
    work = getattr(importlib.import_module(module), function)
    began_at, processor = time.perf_counter(), time.process_time()
    work(*arguments)
    taken = time.perf_counter() - began_at, time.process_time() - processor
    sender.send((*taken, _peak_mib(), psutil.Process().memory_info().rss / 2**20))


def _peak_mib() -> float:
    """Return the most memory that this process had. `getrusage` begins with what its parent had."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024
