"""What `manage.py serve` checks before it starts, and what it prints when the service answers."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import nullcontext
from datetime import UTC, date, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from django.core.management.base import CommandError

from tenantadmin.management.commands import serve
from tenantadmin.run.serve import announce
from tenantadmin.run.serve.address import Address, AddressError, check_is_free

TENANT = "5f0c6f3e-0a55-4b0c-8a43-3c9b6f0f6d11"
DEMO = {
    "adminEmail": "admin@demo.example",
    "ownerEmail": "owner@demo.example",
    "adminPassword": "a password",
    "pat": "tas_pat_demo",
    "tenants": [{"tenantId": TENANT, "name": "Demo"}],
    "lastDay": "2026-03-09",
}


class Recorder(BaseHTTPRequestHandler):
    """Exchanges the one PAT for the one token, and repeats every other request that carries it."""

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        if self.path == "/oauth/token":
            known = "pat=tas_pat_demo" in body or '"pat": "tas_pat_demo"' in body
            self.send({"access_token": "a.b-c_d" if known else "", "token_type": "Bearer"})
        elif self.headers["Authorization"] == "Bearer a.b-c_d":
            self.send({"request": f"{self.command} {self.path}", "body": json.loads(body) if body else None})
        else:
            self.send({"request": "unauthorized"})

    def do_GET(self) -> None:
        self.answer()

    def do_POST(self) -> None:
        self.answer()

    def send(self, document: dict[str, Any]) -> None:
        payload = json.dumps(document).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as the base class has it
        """Keep quiet."""


@pytest.fixture
def recorder() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Recorder) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("has_curl", [True, False])
def test_the_printed_commands_work_as_pasted(
    recorder: str, has_curl: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.which", lambda _: "/usr/bin/curl" if has_curl else None)
    commands = announce.try_commands(recorder, pat="tas_pat_demo", tenant=TENANT, day=date(2026, 3, 9))
    outputs = [
        json.loads(subprocess.run(["sh", "-c", command], capture_output=True, check=True).stdout)
        for _, command in commands
    ]
    sql = (
        "SELECT cacheStatus, count(*) AS entries FROM proxy_logs "
        "WHERE day = '2026-03-09' GROUP BY ALL ORDER BY entries DESC"
    )
    assert outputs == [
        {"request": "GET /config/tenants", "body": None},
        {"request": f"GET /tenants/{TENANT}/summaries/2026/03/09", "body": None},
        {"request": f"POST /tenants/{TENANT}/query", "body": {"sql": sql}},
    ]


def test_the_announcement_names_address_login_and_token(tmp_path: Path) -> None:
    (tmp_path / "demo.json").write_text(json.dumps(DEMO))
    text = announce.describe("http://127.0.0.1:8000", demo_file=tmp_path / "demo.json")
    assert "The service answers at http://127.0.0.1:8000\n" in text
    assert "Dashboard: http://127.0.0.1:8000/dashboard/   owner@demo.example, by a mailed link" in text
    assert "Admin site: http://127.0.0.1:8000/admin/   admin@demo.example / a password\n" in text
    tour = f"PAT=tas_pat_demo TENANT={TENANT} DAY=2026-03-09"
    assert f"\nexport DJANGO_DEBUG=true URL=http://127.0.0.1:8000 {tour}\n" in text
    assert f"/tenants/{TENANT}/summaries/2026/03/09 " in text
    assert text.count("  # ") == 3


def ended(exitcode: int) -> Any:
    """Return the process that has built the demo."""
    return Mock(BaseProcess, exitcode=exitcode)


def test_a_demo_that_cannot_be_built_stops_the_service(recorder: str) -> None:
    address = Address("127.0.0.1", int(recorder.rpartition(":")[2]))
    with pytest.raises(CommandError, match="The days of the demo could not be built"):
        serve.announcement(address, ended(1), threading.Event())


@pytest.mark.parametrize(
    ("failing", "where"), [("migrate", "The service could not be prepared"), ("rebuild", "")]
)
def test_what_cannot_be_prepared_is_said(
    failing: str, where: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def run(command: str, **_: Any) -> None:
        if command == failing:
            raise CommandError("no room")

    monkeypatch.setattr(serve, "call_command", run)
    with pytest.raises(CommandError, match=where) if where else nullcontext():
        with serve.Command()._preparing(demo=True) as building:
            building.join()
        assert building.exitcode == 1
    assert "CommandError: no room" in capfd.readouterr().err


@pytest.mark.parametrize("is_default", [True, False])
def test_commands_of_another_shell_find_a_var_dir_that_was_set(
    recorder: str, is_default: bool, tmp_path: Path, settings: Any
) -> None:
    settings.VAR_DIR = var_dir = tmp_path / "it's $HOME"
    if is_default:
        settings.DEFAULT_VAR_DIR = var_dir
    var_dir.mkdir()
    (var_dir / "demo.json").write_text(json.dumps(DEMO))
    address = Address("127.0.0.1", int(recorder.rpartition(":")[2]))
    text = serve.announcement(address, ended(0), threading.Event())
    assert text is not None
    line = re.search(r"^export .*$", text, re.MULTILINE)
    assert line is not None
    shell = subprocess.run(
        ["sh", "-c", f'unset VAR_DIR; {line[0]}; printf "%s %s" "$DAY" "${{VAR_DIR-none}}"'],
        capture_output=True,
        text=True,
        check=True,
    )
    assert shell.stdout == f"2026-03-09 {'none' if is_default else var_dir}"


def test_a_demo_file_of_before_leads_to_the_day_before_it_was_made(tmp_path: Path) -> None:
    path = tmp_path / "demo.json"
    path.write_text(json.dumps({name: value for name, value in DEMO.items() if name != "lastDay"}))
    os.utime(path, (1_773_100_800, 1_773_100_800))  # 2026-03-10
    assert " DAY=2026-03-09\n" in announce.describe("http://127.0.0.1:8000", demo_file=path)


def test_without_demo_data_the_announcement_says_how_to_get_them(tmp_path: Path) -> None:
    assert announce.describe("http://127.0.0.1:8000", demo_file=tmp_path / "demo.json").endswith(
        "  Demo data: stop it and run  make run\n\n"
    )


def test_waiting_for_an_answer_ends_when_told_to_stop(recorder: str) -> None:
    stopping = threading.Event()
    assert announce.wait_until_it_answers(recorder, stopping=stopping) is True
    stopping.set()
    assert announce.wait_until_it_answers(recorder, stopping=stopping) is False


@pytest.mark.parametrize(
    ("address", "url"),
    [
        (Address("127.0.0.1", 8000), "http://127.0.0.1:8000"),
        (Address("0.0.0.0", 80), "http://127.0.0.1:80"),  # noqa: S104 - nothing is bound
        (Address("::", 65535), "http://[::1]:65535"),
    ],
)
def test_a_client_on_this_machine_reaches_the_address(address: Address, url: str) -> None:
    assert address.url == url


def test_a_port_in_use_is_noticed_and_free_again_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = Address("127.0.0.1", taken.getsockname()[1])
        with pytest.raises(AddressError, match=f"^Port {address.port} on 127.0.0.1 is in use. "):
            check_is_free(address)
    check_is_free(address)


def test_another_system_than_linux_is_told_the_way_by_a_container(tmp_path: Path) -> None:
    makefile = Path(__file__).parents[3] / "Makefile"
    for name in ("requirements.txt", "requirements-embedded.txt"):
        (tmp_path / name).touch()
    uname = tmp_path / "uname"
    uname.write_text("#!/bin/sh\necho Darwin\n")
    uname.chmod(0o755)
    made = subprocess.run(
        # The tests may run under make, and a make under make says which directory it enters.
        ["make", "--no-print-directory", "-f", makefile, "run"],
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=False,
    )
    assert made.returncode == 2
    assert made.stdout.startswith(
        "This service runs on Linux alone; elsewhere in a container: docker run --rm "
    )
    assert made.stdout.endswith(' -v "$PWD":/app -w /app python:3.12 make run\n')


@pytest.mark.slow
def test_an_installation_that_failed_says_why_and_the_next_one_goes_on(tmp_path: Path) -> None:
    root = Path(__file__).parents[3]
    for name in ("Makefile", "scripts/install.sh"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(root / name, tmp_path / name)
    for name in ("requirements.txt", "requirements-embedded.txt", "requirements-dev.txt"):
        (tmp_path / name).touch()

    def install() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["make", "--no-print-directory", f"PYTHON={sys.executable}", ".venv/run.stamp"],
            cwd=tmp_path,
            # Nothing listens there.
            env={
                "PATH": os.environ["PATH"],
                "PIP_CONFIG_FILE": os.devnull,
                "PIP_INDEX_URL": "http://127.0.0.1:9/",
                "PIP_RETRIES": "0",
            },
            capture_output=True,
            text=True,
            check=False,
        )

    (tmp_path / "requirements.txt").write_text(f"django==5.2 --hash=sha256:{'0' * 64}\n")
    failed = install()
    assert failed.returncode == 2
    assert "No matching distribution found for django==5.2" in failed.stderr
    assert "The installation failed. The reason is above." in failed.stderr
    assert not (tmp_path / ".venv/run.stamp").exists()
    (tmp_path / "requirements.txt").write_text("")
    assert install().returncode == 0
    assert (tmp_path / ".venv/run.stamp").exists()


def test_an_address_of_another_machine_is_refused() -> None:
    # TEST-NET-1, which no machine has.
    with pytest.raises(AddressError, match=r"^Cannot listen on 192\.0\.2\.1, port 8000: cannot assign"):
        check_is_free(Address("192.0.2.1", 8000))


def test_the_tour_uses_the_printed_variables(tmp_path: Path) -> None:
    """And names no day of its own: on any other the demo would have no data there."""
    tour = (Path(__file__).parents[3] / "docs/tour.md").read_text()
    commands = re.findall(r"^\$ (.*(?:\n    .*)*)", tour, re.MULTILINE)
    assert len(commands) >= 5
    used = set(re.findall(r"\$\{?([A-Z]+)", "\n".join(commands)))
    set_by_the_tour = set(re.findall(r"\b([A-Z]+)=", "\n".join(commands)))
    (tmp_path / "demo.json").write_text(json.dumps(DEMO))
    printed = announce.describe("http://127.0.0.1:8000", demo_file=tmp_path / "demo.json")
    line = re.search(r"^export (.*)$", printed, re.MULTILINE)
    assert line is not None
    # The commands of manage.py read DJANGO_DEBUG.
    assert used - set_by_the_tour == set(re.findall(r"([A-Z_]+)=", line[1])) - {"DJANGO_DEBUG"}
    assert not re.search(r"20\d\d", "\n".join(commands))


def test_the_demo_goes_on_when_a_day_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    days = iter([9, 9, 10, 10, 10, 10])
    clock = Mock(now=lambda _: datetime(2026, 3, next(days), tzinfo=UTC))
    monkeypatch.setattr(serve, "datetime", clock)
    # The first run fails, and is repeated.
    run = Mock(side_effect=[Mock(returncode=1), Mock(returncode=0)])
    monkeypatch.setattr("subprocess.run", run)
    serve.continue_demo(Mock(wait=Mock(side_effect=[False, False, False, False, True])))
    assert [call.args[0][-2:] for call in run.call_args_list] == [("seed_demo", "--continue")] * 2
