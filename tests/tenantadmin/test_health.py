"""What probes hear, and that they hear it without a token, whatever host they name."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection

from tenantadmin.http import health

if TYPE_CHECKING:
    from tests.conftest import ApiClient

#: Every request looks at the connection.
pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _fresh_probe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "database", health.Probe(health.is_database_reachable))


@pytest.fixture
def no_database(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    monkeypatch.setitem(connection.settings_dict, "HOST", "127.0.0.1")
    monkeypatch.setitem(connection.settings_dict, "PORT", port)


@pytest.mark.parametrize("path", ["/health", "/health/ready"])
def test_a_probe_needs_neither_token_nor_the_public_host(
    anonymous: ApiClient, settings: Any, path: str
) -> None:
    settings.ALLOWED_HOSTS = ["tenants.example.com"]
    answer = anonymous.get(path, Host="10.1.2.3:8000")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})
    assert answer["Content-Type"] == "application/json"
    assert answer["Cache-Control"] == "no-store"
    assert answer["Content-Length"] == "15"
    assert anonymous.request("HEAD", path).status_code == 200


@pytest.mark.usefixtures("no_database")
def test_without_a_database_a_process_lives_but_is_not_ready(anonymous: ApiClient) -> None:
    assert anonymous.get("/health").status_code == 200
    answer = anonymous.get("/health/ready", **{"X-Request-Id": "probe-1"})
    assert (answer.status_code, answer.json()) == (
        503,
        {
            "error": "database_unreachable",
            "message": "The database cannot be reached.",
            "requestId": "probe-1",
        },
    )


def test_the_database_is_asked_once_however_many_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("tenantadmin.http.health.monotonic", lambda: now[0])
    answers = iter([False, True])
    probe = health.Probe(lambda: next(answers))
    assert [probe.ask(), probe.ask()] == [False, False]
    now[0] += health.REMEMBERED_SECONDS
    assert [probe.ask(), probe.ask()] == [True, True]


@pytest.mark.parametrize(("method", "path"), [("POST", "/health"), ("GET", "/health/"), ("GET", "/health/x")])
def test_nothing_else_is_answered(anonymous: ApiClient, method: str, path: str) -> None:
    assert anonymous.request(method, path).status_code == 404


def test_probes_are_no_part_of_the_contract() -> None:
    contract = json.loads((Path(health.__file__).parent / "openapi.json").read_text())
    assert not [path for path in contract["paths"] if path.startswith("/health")]
