"""The web server whose workers die, and where another one has the port."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from tenantadmin.run.serve import web
from tenantadmin.run.serve.address import Address, hold
from tests.ports import reserved_port

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


@pytest.fixture
def address() -> Iterator[Address]:
    with reserved_port() as port:
        yield Address("127.0.0.1", port)


@pytest.fixture
def server(address: Address, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    server = subprocess.Popen(
        [*web.web_command(address), "tests.faults.half_dead:application"],
        cwd=ROOT,
        env={**os.environ, "HALF_DEAD": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    yield server
    with contextlib.suppress(ProcessLookupError):
        os.killpg(server.pid, signal.SIGKILL)
    server.communicate()


def ask(address: Address, path: str = "/") -> str:
    """Return the id of the process that answers, on a new connection; empty if none does."""
    try:
        return requests.get(f"{address.url}{path}", timeout=10).text
    except requests.RequestException:
        return ""


def wait_for_workers(address: Address, count: int) -> set[str]:
    deadline = time.monotonic() + 60
    found: set[str] = set()
    while len(found) < count:
        assert time.monotonic() < deadline
        found |= {ask(address)} - {""}
    return found


def test_a_worker_that_dies_is_replaced_while_the_other_answers(
    address: Address, server: subprocess.Popen[str]
) -> None:
    before = wait_for_workers(address, web.WORKERS)
    assert ask(address, "/die") == ""
    deadline = time.monotonic() + 60
    while len(now := wait_for_workers(address, web.WORKERS)) and now == before:
        assert time.monotonic() < deadline
    assert len(before & wait_for_workers(address, web.WORKERS)) == web.WORKERS - 1
    assert server.poll() is None


def test_a_server_whose_workers_die_again_and_again_ends(
    address: Address, server: subprocess.Popen[str], tmp_path: Path
) -> None:
    wait_for_workers(address, web.WORKERS)
    (tmp_path / "all").touch()
    assert ask(address, "/die") == ""
    output, _ = server.communicate(timeout=web.STOP_SECONDS - 3)
    assert server.returncode == 1
    assert "Worker crash loop detected" in output


@pytest.mark.parametrize("listens", [True, False], ids=["listening", "starting"])
def test_a_second_server_on_a_port_ends_with_a_message(
    address: Address, listens: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.socket() as listener, listener if listens else hold(address, cure=""):
        if listens:
            # As granian's workers do.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            listener.bind((address.host, address.port))
            listener.listen()
        with pytest.raises(SystemExit) as ended:
            web.main(web.web_command(address)[3:])
    assert ended.value.code == (
        f"Port {address.port} on 127.0.0.1 is in use. "
        "Stop the process that uses it, or choose another port with --port 8001."
    )
