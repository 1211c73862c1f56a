"""Shared code of the benchmarks: their own servers, granian as in production, a load generator, tables."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from tenantadmin.conf.secrets import new_secret_key, new_signing_key
from tenantadmin.run import embedded
from tenantadmin.run.serve.address import Address
from tenantadmin.run.serve.web import web_command

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

ROOT = Path(__file__).resolve().parent.parent
console = Console()


@dataclass(frozen=True, slots=True)
class Rate:
    """The result of a load: requests per second, and latency in ms at the median and the 95th percentile."""

    per_second: float
    p50_ms: float
    p95_ms: float


@contextlib.contextmanager
def environment() -> Iterator[Path]:
    """Start PostgreSQL and Redis, set up Django as in production, migrate. Yield a temporary directory."""
    directory = Path(tempfile.mkdtemp(prefix="ta-bench-"))
    servers = embedded.start_for_tests(directory)
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
        DJANGO_SETTINGS_MODULE="bench.settings",
        BENCH_BARE_DIR=str(directory / "bare"),
        LOG_LEVEL="WARNING",
        TENANTADMIN_SUPERVISED="1",
    )
    try:
        import django  # noqa: PLC0415  # needs the environment above
        from django.core.management import call_command  # noqa: PLC0415

        django.setup()
        call_command("migrate", verbosity=0)
        yield directory
    finally:
        servers.stop()
        shutil.rmtree(directory, ignore_errors=True)


def granian(*, workers: int = 1, threads: int = 4) -> AbstractContextManager[int]:
    """Serve the application as in production. Yields the port."""
    port = _free_port()
    return _serve(port, web_command(Address("127.0.0.1", port), workers=workers), threads=threads)


def granian_wsgi(*, threads: int = 4) -> AbstractContextManager[int]:
    """Serve Django's WSGI application by granian itself, with one worker. Yields the port."""
    port = _free_port()
    command = [
        sys.executable,
        "-m",
        "granian",
        "--interface",
        "wsgi",
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
    ]
    command += ["--blocking-threads", str(threads), "--http", "1", "--no-ws", "tenantadmin.wsgi:application"]
    return _serve(port, command, threads=threads)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextlib.contextmanager
def _serve(port: int, command: Sequence[str], *, threads: int) -> Iterator[int]:
    environment = {**os.environ, "WEB_THREADS": str(threads)}
    server = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL)
    try:
        _wait_for(port, server)
        yield port
    finally:
        server.terminate()
        server.wait(20)


def _wait_for(port: int, server: subprocess.Popen[bytes]) -> None:
    for _ in range(300):
        if server.poll() is not None:
            raise RuntimeError(f"granian ended with {server.returncode}")
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.1)
    raise RuntimeError("granian does not answer")


def get_request(path: str, headers: Mapping[str, str] | None = None) -> bytes:
    """Return the bytes of a GET request."""
    lines = [f"GET {path} HTTP/1.1", "Host: 127.0.0.1", *(f"{k}: {v}" for k, v in (headers or {}).items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def measure_rate(
    port: int, request: bytes, *, expect: int = 200, seconds: float = 4.0, connections: int = 4
) -> Rate:
    """Send ``request`` over kept-alive connections, one per process, each as fast as responses come."""
    with multiprocessing.get_context("spawn").Pool(connections) as pool:
        pool.starmap(_send, [(port, request, expect, 0.5)] * connections)  # warm up
        latencies = sorted(
            value
            for part in pool.starmap(_send, [(port, request, expect, seconds)] * connections)
            for value in part
        )
    return Rate(
        per_second=len(latencies) / seconds,
        p50_ms=latencies[len(latencies) // 2] * 1000,
        p95_ms=latencies[int(len(latencies) * 0.95)] * 1000,
    )


RATE_COLUMNS = ("request", "real /s", "bare /s", "ratio", "p50 ms", "p95 ms")


def compare_rates(port: int, title: str, *, real: bytes, bare: bytes, rounds: int = 5) -> list[object]:
    """Send two requests in turn. Return a row of `RATE_COLUMNS` with medians of all rounds.

    In turn, because other load on the machine changes during the measurement.
    """
    pairs = [
        (measure_rate(port, real, seconds=2), measure_rate(port, bare, seconds=2)) for _ in range(rounds)
    ]
    ratio = statistics.median(one.per_second / other.per_second for one, other in pairs)
    reals, bares = zip(*pairs, strict=True)
    return [
        title,
        statistics.median(rate.per_second for rate in reals),
        statistics.median(rate.per_second for rate in bares),
        ratio,
        statistics.median(rate.p50_ms for rate in reals),
        statistics.median(rate.p95_ms for rate in reals),
    ]


def _send(port: int, request: bytes, expect: int, seconds: float) -> list[float]:
    latencies = []
    expected = f"HTTP/1.1 {expect} ".encode()
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        reader = connection.makefile("rb")
        end = time.perf_counter() + seconds
        while (start := time.perf_counter()) < end:
            connection.sendall(request)
            status = reader.readline()
            if not status.startswith(expected):
                raise RuntimeError(f"answered {status!r} to {request[:80]!r}")
            length = 0
            while (line := reader.readline()) != b"\r\n":
                if line.lower().startswith(b"content-length:"):
                    length = int(line[15:])
            reader.read(length)
            latencies.append(time.perf_counter() - start)
    return latencies


def show(title: str, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table. The first column is aligned left, the others right."""
    table = Table(title=title, title_justify="left")
    for index, name in enumerate(header):
        table.add_column(name, justify="left" if index == 0 else "right")
    for row in rows:
        table.add_row(*(f"{cell:,.2f}" if isinstance(cell, float) else str(cell) for cell in row))
    console.print(table)
