"""Fixtures of all tests: fixed users, and a client that sends and reads JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest
from django.core.handlers.base import BaseHandler
from django.db import connection
from django.test import Client, TransactionTestCase

from accounts import budgets
from accounts.access import rights
from logs.cancelling import CancelWatch
from tenantadmin.lib.core.memory import freeze_objects
from tests.emptying import empty_database
from tests.objects import use_store
from tests.rights_guard import require_readers
from tests.worlds import WorldCopier

if TYPE_CHECKING:
    from django.test.client import _MonkeyPatchedWSGIResponse as Answer
    from pytest_django.plugin import DjangoDbBlocker

    from tests import factories

pytest_plugins = ["tests.admin.staff"]

# Use the same examples in every run, so that only a change of the code can make a test fail. Other examples:
# --hypothesis-profile=random.
hypothesis.settings.register_profile("random", deadline=None)
hypothesis.settings.register_profile("repeatable", derandomize=True, database=None, deadline=None)
hypothesis.settings.load_profile("repeatable")


def pytest_collection_finish() -> None:
    # The tests themselves are half a million objects. A full collection looks at each, which takes as long as
    # the lint of a large ruleset may, and counts as processor time of whatever runs then.
    freeze_objects()


class ApiClient:
    """A client of the API with one bearer token. It sends and reads JSON."""

    def __init__(self, token: str | None = None) -> None:
        self._client = Client(raise_request_exception=False)
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    def request(
        self, method: str, path: str, body: Any = None, *, headers: dict[str, str] | None = None
    ) -> Answer:
        content = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        return self._client.generic(
            method, path, content, "application/json", headers={**self._headers, **(headers or {})}
        )

    def get(self, path: str, **headers: str) -> Answer:
        return self.request("GET", path, headers=headers)

    def put(self, path: str, body: Any, **headers: str) -> Answer:
        return self.request("PUT", path, body, headers=headers)

    def patch(self, path: str, body: Any) -> Answer:
        return self.request("PATCH", path, body)

    def post(self, path: str, body: Any = None) -> Answer:
        return self.request("POST", path, body)

    def delete(self, path: str) -> Answer:
        return self.request("DELETE", path)


@pytest.fixture(autouse=True, scope="session")
def _emptied_between_tests() -> Iterator[None]:
    """Empty the database after a test that commits, in place of Django's flush."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TransactionTestCase, "_fixture_teardown", lambda _: empty_database())
        yield


@pytest.fixture(autouse=True, scope="session")
def _not_durable() -> Iterator[None]:
    """Do not wait for the disk. What a test writes need not survive a crash of the machine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield


@pytest.fixture(autouse=True, scope="session")
def _no_watch_by_itself() -> Iterator[None]:
    """Start no thread that writes rows of running queries. Tests call ``WATCH.look`` themselves."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CancelWatch, "_watch", lambda _: None)
        yield


@pytest.fixture(autouse=True, scope="session")
def _rights_are_guarded() -> Iterator[None]:
    """Let a request fail that writes rights past `accounts.readers`."""
    answer = BaseHandler.get_response

    def guarded(handler: BaseHandler, request: Any) -> Any:
        with connection.execute_wrapper(require_readers):
            return answer(handler, request)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BaseHandler, "get_response", guarded)
        yield


def clear_principal_cache() -> None:
    """Have the rights of callers read again by this process."""
    rights._principal_cache.clear()


@pytest.fixture(autouse=True)
def _fresh_rights() -> Iterator[None]:
    """Clear cached rights before and after each test."""
    clear_principal_cache()
    budgets._spenders.clear()
    budgets._untold.clear()
    yield
    clear_principal_cache()


@pytest.fixture(autouse=True)
def object_store(tmp_path: Path, settings: Any) -> Path:
    """Use an empty object store of local files in this test. Return its folder."""
    root = tmp_path / "objects"
    root.mkdir()
    use_store(settings, f"file://{root}")
    return root


@pytest.fixture
def anonymous() -> ApiClient:
    return ApiClient()


@pytest.fixture(scope="session")
def test_var_dir() -> Path:
    """The folder of the test servers."""
    return Path(os.environ["TENANTADMIN_TEST_VAR"])


_world_copiers: list[WorldCopier] = []


@pytest.fixture(scope="module")
def _worlds(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> WorldCopier:
    if not _world_copiers or _world_copiers[-1].is_old:
        with django_db_blocker.unblock():
            _world_copiers[:] = [WorldCopier()]
    return _world_copiers[-1]


@pytest.fixture
def world(_worlds: WorldCopier, db: None) -> factories.World:
    """One tenant with owner, admin and member; a stranger with another; a platform admin."""
    return _worlds.copy()
