"""What `manage.py check --deploy` says about servers and variables."""

from __future__ import annotations

import http.server
import os
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.core.checks import run_checks
from django.db import connection

from logs.checks import check_restrictions, check_sql_options
from tenantadmin.checks import check_variables
from tests.objects import use_store
from tests.tenantadmin.compose import documented_file, environment_of


def found(*, deploy: bool = True) -> dict[str, str]:
    """Return the messages about servers, by id."""
    return {
        str(message.id): str(message.msg)
        for message in run_checks(include_deployment_checks=deploy)
        if str(message.id).startswith("tenantadmin.E1")
    }


def use_sql_service(settings: Any, url: str) -> None:
    settings.SQL_OPTIONS = replace(django_settings.SQL_OPTIONS, service_url=url)


@pytest.fixture
def sql_service() -> Iterator[tuple[str, list[int]]]:
    """The address of an SQL service, and the status that it answers."""
    status = [200]

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            assert self.path == "/health"
            self.send_response(status[0])
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", status
    server.shutdown()
    server.server_close()


@pytest.mark.django_db
def test_servers_that_answer_are_not_reported(settings: Any, sql_service: tuple[str, list[int]]) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
    use_sql_service(settings, sql_service[0])
    assert found() == {}


@pytest.mark.django_db
def test_unreachable_servers_are_named(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION"):
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    use_store(settings, "s3://bucket")
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 1
    use_sql_service(settings, "http://127.0.0.1:1")
    monkeypatch.setitem(connection.settings_dict, "USER", "nobody")
    monkeypatch.setitem(connection.settings_dict, "PASSWORD", "hush")
    messages = found()
    assert set(messages) == {f"tenantadmin.E10{number}" for number in range(1, 6)}
    assert messages["tenantadmin.E101"].startswith("The object store cannot be reached: cannot reach")
    assert messages["tenantadmin.E104"].startswith("The database cannot be reached: ")
    assert "nobody" in messages["tenantadmin.E104"]
    assert "hush" not in str(messages)
    assert messages["tenantadmin.E105"].startswith("The SQL service cannot be reached: ")
    assert found(deploy=False) == {}


@pytest.mark.django_db
def test_a_sql_service_whose_queries_fail_is_reported(
    settings: Any, sql_service: tuple[str, list[int]]
) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
    address, status = sql_service
    status[0] = 503
    use_sql_service(settings, address)
    assert found() == {
        "tenantadmin.E105": "The SQL service cannot be reached: HTTP Error 503: Service Unavailable"
    }


class TestVariables:
    @pytest.fixture(autouse=True)
    def _clean(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        """Set only the variables of the documented deployment."""
        documented = documented_file(tmp_path)
        for name in os.environ:
            monkeypatch.delenv(name)
        for name, value in environment_of("web", documented).items():
            monkeypatch.setenv(name, value)

    @staticmethod
    def messages() -> list[str]:
        return [str(message.msg) for message in check_variables()]

    def test_the_documented_deployment_is_whole(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert self.messages() == []
        # What compose reads from the same file, and what Kubernetes adds for the Service `sql`.
        for name in ("WEB_MEMORY", "SQL_MEMORY", "PUBLISH_ADDRESS", "PROXY_ADDRESS", "S3_BUCKET"):
            monkeypatch.setenv(name, "x")
        for name in ("SERVICE_HOST", "SERVICE_PORT", "SERVICE_PORT_HTTP", "PORT", "PORT_8100_TCP_PORT"):
            monkeypatch.setenv(f"SQL_{name}", "x")
        monkeypatch.delenv("OBJECT_STORE_URL")
        monkeypatch.setenv("OBJECT_STORE_URL_FILE", "/run/secrets/store")
        assert self.messages() == []

    @pytest.mark.parametrize(
        ("name", "effect"),
        [
            (
                "OBJECT_STORE_URL",
                (
                    "Each machine and container keeps raw logs, summaries and terms of service in files"
                    " of its own."
                ),
            ),
            ("PUBLIC_BASE_URL", "Links in mails and the issuer of access tokens name this machine."),
        ],
    )
    def test_a_missing_variable_is_named(
        self, name: str, effect: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv(name)
        assert self.messages() == [f"{name} is not set. {effect}"]
        monkeypatch.setenv(name, "")
        assert self.messages() == [f"{name} is not set. {effect}"]

    @pytest.mark.parametrize(
        ("misspelt", "right"),
        [
            ("SQL_SLOT", "SQL_SLOTS"),
            ("TRUSTED_PROXYS", "TRUSTED_PROXIES"),
            ("EMAIL_ULR", "EMAIL_URL"),
            ("JWT_PRIVAT_KEY_FILE", "JWT_PRIVATE_KEY"),
            ("CORS_ALLOWED_ORIGIN", "CORS_ALLOWED_ORIGINS"),
        ],
    )
    def test_a_misspelt_variable_is_named(
        self, misspelt: str, right: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv(misspelt, "x")
        name = misspelt.removesuffix("_FILE")
        assert self.messages() == [f"The variable {name} is not read. Do you mean {right}?"]


@pytest.mark.parametrize(
    ("threads", "slots", "queue", "url", "is_reported"),
    [
        (32, 12, 12, "", False),
        (25, 12, 12, "", False),
        (24, 12, 12, "", True),
        (8, 12, 0, "", True),
        (8, 12, 0, "http://sql:8100", False),
    ],
)
def test_queries_that_may_take_all_threads_are_reported(
    settings: Any, threads: int, slots: int, queue: int, url: str, is_reported: bool
) -> None:
    settings.WEB_THREADS = threads
    settings.SQL_OPTIONS = replace(
        django_settings.SQL_OPTIONS, slots=slots, slots_per_tenant=1, queue=queue, service_url=url
    )
    assert [message.id for message in check_sql_options()] == (["logs.W002"] if is_reported else [])


def test_a_kernel_without_landlock_is_reported(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("logs.sql.sandbox.landlock_version", lambda: 1)
    assert check_restrictions() == []
    monkeypatch.setattr("logs.sql.sandbox.landlock_version", lambda: -1)
    assert [message.id for message in check_restrictions()] == ["logs.W003"]
    use_sql_service(settings, "http://sql:8100")
    assert check_restrictions() == []
