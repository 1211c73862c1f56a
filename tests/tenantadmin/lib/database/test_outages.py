"""What callers and the log get while PostgreSQL or Redis is away."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
import redis
from django.db import DatabaseError, connection

from tenantadmin.lib.core.log_lines import logging_config
from tenantadmin.lib.database.connections import NoOutageTraceback, is_database_away, is_redis_away
from tests.ports import reserved_port

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper

    from tests.conftest import ApiClient

pytestmark = pytest.mark.django_db


def error_of(database: BaseDatabaseWrapper, statement: str) -> DatabaseError:
    with pytest.raises(DatabaseError) as caught, database.cursor() as cursor:
        cursor.execute(statement)
    return caught.value


@pytest.fixture
def unreachable(other: BaseDatabaseWrapper) -> Iterator[BaseDatabaseWrapper]:
    with reserved_port() as port:
        other.settings_dict |= {"HOST": "127.0.0.1", "PORT": str(port)}
        yield other


def test_a_server_that_cannot_be_reached_is_away(unreachable: BaseDatabaseWrapper) -> None:
    assert is_database_away(error_of(unreachable, "SELECT 1"))


def test_a_server_that_ends_a_connection_is_away(other: BaseDatabaseWrapper) -> None:
    with other.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        [pid] = cursor.fetchone()
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
    assert is_database_away(error_of(other, "SELECT 1"))


@pytest.mark.parametrize(
    "statement",
    ["SELECT 1 / 0", "SELECT missing", "SET statement_timeout = 1; SELECT pg_sleep(1)"],
    ids=["arithmetic", "column", "timeout"],
)
def test_an_error_of_a_statement_is_no_outage(other: BaseDatabaseWrapper, statement: str) -> None:
    assert not is_database_away(error_of(other, statement))


def test_redis_is_away_also_as_the_cause_of_an_error() -> None:
    with reserved_port() as port:
        client = redis.Redis(port=port)
        with pytest.raises(redis.ConnectionError) as caught:
            client.ping()
    outer = RuntimeError("outer")
    outer.__cause__ = caught.value
    assert is_redis_away(caught.value)
    assert is_redis_away(outer)
    assert not is_redis_away(redis.ResponseError("OOM"))


def written(error: Exception, *, logger: str) -> str:
    """Return what a handler of the service writes of an exception."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.addFilter(NoOutageTraceback())
    exc_info = (type(error), error, error.__traceback__)
    handler.handle(logging.LogRecord(logger, logging.ERROR, "", 0, "Task %s failed", ("a",), exc_info))
    return stream.getvalue()


def test_an_outage_is_one_line_of_the_log(unreachable: BaseDatabaseWrapper) -> None:
    line = written(error_of(unreachable, "SELECT 1"), logger="celery.app.trace")
    assert line.startswith("Task a failed: connection failed: ")
    assert line.count("\n") == 1
    config: dict[str, Any] = logging_config(level=logging.INFO, is_json=False)
    assert "no_outage_traceback" in config["handlers"]["stderr"]["filters"]


def refuse() -> None:
    raise redis.ResponseError("OOM")


def test_what_redis_refuses_keeps_its_traceback_but_for_the_broker() -> None:
    with pytest.raises(redis.ResponseError) as caught:
        refuse()
    assert "Traceback" in written(caught.value, logger="accounts.limits")
    assert written(caught.value, logger="celery.worker") == "Task a failed: OOM\n"


def test_a_request_is_answered_503_and_may_be_sent_again(
    anonymous: ApiClient, unreachable: BaseDatabaseWrapper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "cursor", unreachable.cursor)
    response = anonymous.get("/auth/magic-link/verify?t=abcd")
    assert response.status_code == 503
    assert response["Retry-After"] == "1"
    assert response.json()["error"] == "database_unreachable"


def test_a_page_of_the_admin_site_says_so_too(
    client: Any, unreachable: BaseDatabaseWrapper, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.raise_request_exception = False
    client.cookies["sessionid"] = "a" * 32
    monkeypatch.setattr(connection, "cursor", unreachable.cursor)
    response = client.get("/admin/", headers={"accept": "text/html"})
    assert response.status_code == 503
    assert "The database cannot be reached." in response.text
