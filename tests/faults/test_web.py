"""The web server that ends: with one of its workers, and where another one has the port."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from tenantadmin.run.serve import web
from tenantadmin.run.serve.address import Address, hold

ROOT = Path(__file__).parents[2]


@pytest.fixture
def address() -> Address:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return Address("127.0.0.1", int(probe.getsockname()[1]))


def test_a_worker_that_dies_while_another_starts_ends_the_server(address: Address, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    server = subprocess.Popen(
        [*web.web_command(address), "tests.faults.half_dead:application"],
        cwd=ROOT,
        env={**os.environ, "HALF_DEAD": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        # Not by the kill after STOP_SECONDS, which is longer.
        output, _ = server.communicate(timeout=web.STOP_SECONDS - 3)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGKILL)
    assert server.returncode == 1
    assert output.count("Unexpected exit from worker-") == 1
    assert "refused to gracefully stop" not in output


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
