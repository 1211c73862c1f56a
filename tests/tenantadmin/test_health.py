"""Tests of the health checks. They need no token and accept any host."""

from __future__ import annotations

import json
import socket
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection

from tenantadmin.lib.core.probes import CACHE_SECONDS
from tenantadmin.lib.http import health, middleware
from tenantadmin.lib.http.published_contract import published_contract
from tests.objects import use_store

if TYPE_CHECKING:
    from tests.conftest import ApiClient

#: Django checks the database connection in every request.
pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def readiness(monkeypatch: pytest.MonkeyPatch) -> health.Readiness:
    readiness = health.Readiness(health.readiness._probes)
    monkeypatch.setattr(middleware, "readiness", readiness)
    return readiness


def is_degraded(answer: Any, *servers: str) -> bool:
    """Return True if the process is ready and names the servers that it cannot reach."""
    return (answer.status_code, answer.json()) == (200, {"status": "degraded", "unreachable": [*servers]})


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


def test_without_redis_the_process_is_ready(anonymous: ApiClient, settings: Any) -> None:
    """No other process would answer more, so none may leave the load balancer."""
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    assert is_degraded(anonymous.get("/health/ready"), "redis")


def test_without_the_object_store_the_process_is_ready(
    anonymous: ApiClient, settings: Any, monkeypatch: pytest.MonkeyPatch, readiness: health.Readiness
) -> None:
    for name, value in (
        ("AWS_ENDPOINT_URL", "http://127.0.0.1:1"),
        ("AWS_ACCESS_KEY_ID", "x"),
        ("AWS_SECRET_ACCESS_KEY", "x"),
        ("AWS_DEFAULT_REGION", "us-east-1"),
    ):
        monkeypatch.setenv(name, value)
    use_store(settings, "s3://bucket")
    assert is_degraded(anonymous.get("/health/ready"), "object_store")
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    readiness._expires_at = 0
    assert is_degraded(anonymous.get("/health/ready"), "redis", "object_store")


def test_a_store_of_files_that_has_no_object_yet_is_ready(anonymous: ApiClient, object_store: Path) -> None:
    object_store.rmdir()
    assert anonymous.get("/health/ready").status_code == 200


def test_a_server_that_accepts_but_does_not_answer_is_unreachable(
    anonymous: ApiClient, settings: Any
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        settings.REDIS_URL = f"redis://127.0.0.1:{silent.getsockname()[1]}/0"
        assert is_degraded(anonymous.get("/health/ready"), "redis")


def test_a_check_that_hangs_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "DEADLINE_SECONDS", 0.05)
    goes_on = threading.Event()
    checks = {health.REDIS: lambda: True, health.DATABASE: lambda: goes_on.wait(30)}
    with pytest.raises(health.DatabaseUnreachable):
        health.Readiness(checks).describe()
    goes_on.set()


def test_a_result_is_cached(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("tenantadmin.lib.core.probes.monotonic", lambda: now[0])
    results = iter([1, 0])
    readiness = health.Readiness({health.REDIS: lambda: 1 // (1 - next(results))})
    degraded = {"status": "degraded", "unreachable": ["redis"]}
    assert [readiness.describe(), readiness.describe()] == [degraded] * 2
    now[0] += CACHE_SECONDS
    assert [readiness.describe(), readiness.describe()] == [{"status": "ok"}] * 2


@pytest.mark.parametrize(("method", "path"), [("POST", "/health"), ("GET", "/health/"), ("GET", "/health/x")])
def test_other_requests_are_not_health_checks(anonymous: ApiClient, method: str, path: str) -> None:
    assert anonymous.request(method, path).status_code == 404


def test_health_checks_are_not_part_of_the_contract() -> None:
    contract = json.loads(published_contract()[0])
    assert not [path for path in contract["paths"] if path.startswith("/health")]
