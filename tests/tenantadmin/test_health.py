"""Tests of the health checks. They need no token and accept any host."""

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

#: Django checks the database connection in every request.
pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _empty_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "database_check", health.CachedCheck(health.is_database_reachable))


@pytest.fixture
def no_database(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the database unreachable: nothing listens on the port."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    monkeypatch.setitem(connection.settings_dict, "HOST", "127.0.0.1")
    monkeypatch.setitem(connection.settings_dict, "PORT", port)


@pytest.mark.parametrize("path", ["/health", "/health/ready"])
def test_a_health_check_needs_neither_a_token_nor_the_public_host(
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
def test_without_a_database_the_process_is_healthy_but_not_ready(anonymous: ApiClient) -> None:
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


def test_a_result_is_cached(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("tenantadmin.http.health.monotonic", lambda: now[0])
    results = iter([False, True])
    check = health.CachedCheck(lambda: next(results))
    assert [check.run(), check.run()] == [False, False]
    now[0] += health.CACHE_SECONDS
    assert [check.run(), check.run()] == [True, True]


@pytest.mark.parametrize(("method", "path"), [("POST", "/health"), ("GET", "/health/"), ("GET", "/health/x")])
def test_other_requests_are_not_health_checks(anonymous: ApiClient, method: str, path: str) -> None:
    assert anonymous.request(method, path).status_code == 404


def test_health_checks_are_not_part_of_the_contract() -> None:
    contract = json.loads((Path(health.__file__).parent / "openapi.json").read_text())
    assert not [path for path in contract["paths"] if path.startswith("/health")]
