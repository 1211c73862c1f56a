"""The demo's data of two days, its people and one of each other role, and the dashboard on two origins."""

from __future__ import annotations

import mimetypes
import re
import threading
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest
from django.contrib.staticfiles import finders
from django.core.cache import cache
from django.core.management import call_command
from django.template.loader import render_to_string

from accounts.signin.flow import Device, Identity, complete_sign_in
from tenantadmin.demo.reading import read_demo
from tenantadmin.demo.seed import seed_demo
from tenantadmin.objectstore import default_store
from tests import factories
from tests.browser.dashboard.demo import Demo
from tests.browser.dashboard.watching import Watched, watched_dashboard
from tests.conftest import ApiClient

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from accounts.models import User

DAYS = 2


@pytest.fixture
def demo(transactional_db: None, settings: Any, tmp_path: Path) -> Demo:
    settings.VAR_DIR = tmp_path / "var"
    settings.VAR_DIR.mkdir()
    cache.clear()
    today = datetime.now(UTC).date()
    for _ in seed_demo(default_store(), read_demo(), today=today, days=DAYS, share=0.1):
        pass
    call_command("rebuild")
    return Demo()


@pytest.fixture
def own_origin(service: str, settings: Any) -> str:
    """The dashboard as the service serves it."""
    settings.DASHBOARD_URL = address = f"{service}/dashboard/"
    return address


@pytest.fixture
def other_origin(service: str, settings: Any) -> Iterator[str]:
    """The same files from a host that has nothing else, with the service named in the page."""
    page = re.sub(
        r'name="api" content=""', f'name="api" content="{service}"', render_to_string("dashboard/index.html")
    )

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
        threading.Thread(target=server.serve_forever, daemon=True).start()
        origin = f"http://127.0.0.1:{server.server_port}"
        settings.CORS_ALLOWED_ORIGINS = settings.ALLOWED_REDIRECT_HOSTS = [origin]
        yield f"{origin}/"
        server.shutdown()


@pytest.fixture(params=["own", "other"])
def home(request: pytest.FixtureRequest) -> str:
    """The dashboard's address, on the service's origin and on another."""
    address: str = request.getfixturevalue(f"{request.param}_origin")
    return address


def sign_in(user: User) -> str:
    """Return the query with the tokens of a new sign-in, after ``user`` has accepted the terms."""
    client = ApiClient(factories.sign_in(user))
    terms = client.get("/tos").content.decode()
    assert client.post("/users/me/tos", {"markdown": terms}).status_code == 204
    return urlencode(complete_sign_in(Identity(email=user.email, email_verified=True), Device()).as_json())


@pytest.fixture
def open_as(chromium: str, service: str) -> Callable[..., AbstractContextManager[Watched]]:
    """Return the function that opens the dashboard, signed in as a user."""

    @contextmanager
    def opened(user: User, home: str, path: str = "/", **context: Any) -> Iterator[Watched]:
        query = sign_in(user)
        with watched_dashboard(chromium, home=home, api=service, **context) as watched:
            watched.page.goto(f"{home}?{query}#{path}")
            watched.settle()
            yield watched

    return opened
