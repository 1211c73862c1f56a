"""The demo's data of two days, its people and one of each other role, and the dashboard on two origins.

Each test runs on the service's own origin and, by CORS, on another.

All is made once for the tests of this folder. They share it: a test leaves what others count as it found it.
"""

from __future__ import annotations

import mimetypes
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch
from uuid import UUID

import pytest
from django.conf import settings
from django.contrib.staticfiles import finders
from django.core.cache import cache
from django.core.management import call_command
from django.template.loader import render_to_string
from django.test import override_settings
from pytest_django.live_server_helper import LiveServer

from accounts.dashboard import PAGES
from accounts.models import PersonalAccessToken, Tenant
from analytics.demo.logs import read_demo
from analytics.demo.seed import seed_demo
from logs.definitions import PAGE_DEFINITIONS, STATUSES
from rules.contract import rule_words
from tenantadmin.lib.objectstore import default_store, storage_settings
from tests.browser.dashboard.demo import Demo
from tests.browser.dashboard.signing_in import sign_in
from tests.browser.dashboard.watching import Watched, watched_dashboard
from tests.emptying import empty_database

if TYPE_CHECKING:
    from playwright.sync_api import Browser
    from pytest_django.plugin import DjangoDbBlocker

    from accounts.models import User

DAYS = 2


@pytest.fixture(scope="package", autouse=True)
def object_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """One store for all tests of this folder, in place of one for each."""
    root = tmp_path_factory.mktemp("objects")
    with override_settings(STORAGES={**settings.STORAGES, "objects": storage_settings(f"file://{root}")}):
        yield root


@pytest.fixture(scope="package")
def service() -> Iterator[str]:
    server = LiveServer("localhost")
    address = server.url
    changed = {
        "ALLOWED_HOSTS": [*settings.ALLOWED_HOSTS, "localhost"],
        "PUBLIC_BASE_URL": address,
        "DASHBOARD_URL": f"{address}/dashboard/",
        "RATE_LIMIT_NAMESPACE": f"test-{uuid.uuid4().hex}",
    }
    with override_settings(**changed):
        yield address
        server.stop()


@pytest.fixture(scope="package")
def transactional_db(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """The database, emptied after all tests of this folder and not after each."""
    with django_db_blocker.unblock():
        yield
        empty_database()


@pytest.fixture(scope="package")
def demo(
    service: str, object_store: Path, transactional_db: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Demo]:
    with override_settings(VAR_DIR=tmp_path_factory.mktemp("var")):
        cache.clear()
        today = datetime.now(UTC).date()
        # The logs follow from the ids of the tenants: they are the same in every run of a day.
        ids = (UUID(int=number, version=4) for number in count(1))
        with patch.object(Tenant._meta.pk, "_get_default", lambda: next(ids)):
            for _ in seed_demo(default_store(), read_demo(), today=today, days=DAYS, share=0.1):
                pass
        call_command("rebuild")
        yield Demo()


@pytest.fixture(scope="package")
def own_origin(service: str) -> str:
    """The dashboard as the service serves it."""
    return f"{service}/dashboard/"


@pytest.fixture(scope="package")
def other_origin(service: str) -> Iterator[str]:
    """The same files from a host that has nothing else, with the service named in the page."""
    known = {
        "statuses": STATUSES,
        "definitions": PAGE_DEFINITIONS,
        "rule_words": rule_words(),
        "pages": [page._asdict() for page in PAGES],
    }
    own = render_to_string("dashboard/index.html", known)
    page = own.replace('name="api" content=""', f'name="api" content="{service}"')

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            found = finders.find(path.removeprefix("/static/")) if path.startswith("/static/") else None
            body = page.encode() if path == "/" else Path(found).read_bytes() if found else None
            self.send_response(404 if body is None else 200)
            kind = "text/html" if path == "/" else mimetypes.guess_type(path)[0]
            self.send_header("Content-Type", kind or "application/octet-stream")
            self.end_headers()
            self.wfile.write(body or b"")

        def log_message(self, *arguments: Any) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        origin = f"http://127.0.0.1:{server.server_port}"
        with override_settings(CORS_ALLOWED_ORIGINS=[origin], ALLOWED_REDIRECT_HOSTS=[origin]):
            yield f"{origin}/"
        server.shutdown()


@pytest.fixture
def home(request: pytest.FixtureRequest) -> str:
    """The dashboard's address, on the service's origin. With `at_both_origins`, also on another."""
    address: str = request.getfixturevalue(f"{getattr(request, 'param', 'own')}_origin")
    return address


@pytest.fixture
def open_as(demo: Demo, browser: Browser, service: str) -> Callable[..., AbstractContextManager[Watched]]:
    """Return the function that opens the dashboard, signed in as a user."""

    @contextmanager
    def opened(user: User, home: str, path: str = "/", **context: Any) -> Iterator[Watched]:
        query = sign_in(user)
        with watched_dashboard(browser, home=home, api=service, **context) as watched:
            # As if the sign-in had been begun in this tab.
            watched.page.add_init_script(
                "if (location.protocol.startsWith('http') && !sessionStorage.getItem('dashboard.signin'))"
                " sessionStorage.setItem('dashboard.signin', JSON.stringify({at: Date.now()}))"
            )
            watched.page.goto(f"{home}?{query}#{path}")
            watched.settle()
            yield watched
        PersonalAccessToken.objects.filter(name__startswith="Dashboard").delete()

    return opened
