"""Take pictures of the demo: ``make screenshots``.

The pictures of the documentation go to `docs/images`, with a sheet of both products. `.cache/pages`
gets every page, wide, narrow and dark, to look at.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import urlencode

import msgspec
import requests

from tests.browser.browsing import browsing, find_chromium
from tests.browser.dashboard.pages import dashboard_pages

if TYPE_CHECKING:
    from playwright.sync_api import Page, ViewportSize

ROOT: Final = Path(__file__).resolve().parents[2]
_IMAGES: Final = ROOT / "docs" / "images"
_PAGES: Final = ROOT / ".cache" / "pages"
_SIZE: Final[ViewportSize] = {"width": 1280, "height": 800}
_LOOKS: Final[dict[str, tuple[ViewportSize, Literal["light", "dark"]]]] = {
    "1280": (_SIZE, "light"),
    "390": ({"width": 390, "height": 844}, "light"),
    "dark": (_SIZE, "dark"),
}
#: What a page is about, where its path does not say it.
_ASKED: Final = {
    "fqdns": "?q=retail.gateway.localhost",
}
#: Parts of pages, and addresses that lead to another page.
_NO_PAGES: Final = ("search", "suggestions", "person-of", "people-revoke", "person-revoke", "tenant-revoke")
#: A longer page is cut.
_MOST_HEIGHT: Final = 3000
#: How long the demo may take to start, and its replay to end.
_SECONDS: Final = 600


@contextmanager
def running_demo(var_dir: str) -> Iterator[str]:
    """Run the service with the demo on a free port; yield its address."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = str(probe.getsockname()[1])
    os.environ.update(VAR_DIR=var_dir, PORT=port, DJANGO_DEBUG="true")
    os.environ["DJANGO_SETTINGS_MODULE"] = "tenantadmin.settings"
    command = [sys.executable, "manage.py", "serve", "--demo"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL) as service:
        try:
            address = f"http://127.0.0.1:{port}"
            _wait(lambda: _is_ready(address), service)
            yield address
        finally:
            service.terminate()
            service.wait(60)


def _is_ready(address: str) -> bool:
    try:
        return requests.get(f"{address}/health/ready", timeout=5).ok
    except requests.ConnectionError:
        return False


def _wait(is_done: Any, service: subprocess.Popen[bytes] | None = None) -> None:
    deadline = time.monotonic() + _SECONDS
    while not is_done():
        if time.monotonic() > deadline or (service is not None and service.poll() is not None):
            raise SystemExit("The demo did not start.")
        time.sleep(1)


def prepare() -> tuple[dict[str, str], dict[str, str], dict[str, Any]]:
    """Wait for the replay of the demo.

    Return the paths of the documentation's pictures by name, what `demo.json` says, and values for the
    addresses of all pages.
    """
    # Needs the environment.
    import django

    django.setup()
    from accounts.limited_access import take_access
    from accounts.models import Tenant, User
    from accounts.signin.flow import Device, Identity, complete_sign_in
    from analytics.advice.recommend import request_mining
    from analytics.demo.seed import demo_file
    from analytics.models import Digest, Recommendation, ReplayRun
    from tosapp.publishing import require_active

    done = ReplayRun.objects.filter(state=ReplayRun.State.DONE, subject__has_key="draftId")
    _wait(done.exists)
    run = done.latest("requested_at")
    said = json.loads(demo_file().read_text())
    User.objects.filter(email=said["ownerEmail"]).update(tos=require_active().hash)
    take_access(User.objects.get(email=said["adminEmail"]), tenant_id=run.tenant_id, hours=1)
    owner = complete_sign_in(Identity(email=said["ownerEmail"], email_verified=True), Device())
    tenant = f"/admin/tenants/{run.tenant_id}/"
    advice = Recommendation.objects.filter(tenant_id=run.tenant_id, state="open")
    if not advice.exists():
        request_mining(tenant_id=run.tenant_id, actor=said["adminEmail"])
        _wait(advice.exists)
    tokens = urlencode(msgspec.structs.asdict(owner))
    dashboard = f"/dashboard/#/t/{run.tenant_id}"
    paths = {
        "home": "/admin/",
        "tenant": tenant,
        "dashboard": f"/dashboard/?{tokens}#/t/{run.tenant_id}/overview",
        "replay": f"{dashboard}/replays/{run.pk}",
        "markers": f"{dashboard}/invalidate?show=past",
        "sql": f"{dashboard}/sql",
        "history": f"{dashboard}/history?kind=rules&seq=2",
        "docs": "/docs",
    }
    _wait(Digest.objects.filter(tenant_id=run.tenant_id).exists)
    known = {
        "tenant": run.tenant_id,
        "account": Tenant.objects.get(pk=run.tenant_id).account_id,
        "person": User.objects.get(email=said["ownerEmail"]).pk,
        "draft": run.subject["draftId"],
        "replay": run.pk,
        "kind": "rules",
        "seq": 2,
    }
    return paths, said, known


def take(page: Page, name: str) -> None:
    """Take the pictures of the present page, wide, narrow and dark."""
    for look, (size, scheme) in _LOOKS.items():
        page.set_viewport_size(size)
        page.emulate_media(color_scheme=scheme)
        if scheme == "dark":
            # Staff pages choose their colors when they are loaded.
            page.reload(wait_until="networkidle")
        # Charts are drawn again, and tables fitted.
        page.wait_for_timeout(150)
        height = page.evaluate("document.documentElement.scrollHeight")
        clip = {"x": 0, "y": 0, "width": size["width"], "height": min(height, _MOST_HEIGHT)}
        page.screenshot(path=_PAGES / f"{name}-{look}.png", full_page=True, clip=clip)  # type: ignore[arg-type]
    page.set_viewport_size(_SIZE)
    page.emulate_media(color_scheme="light")


def take_all(page: Page, address: str, known: dict[str, Any]) -> None:
    """Take the pictures of every page of both products. ``page`` is signed in to both."""
    _PAGES.mkdir(parents=True, exist_ok=True)
    # Needs the environment.
    from tests.browser.staff.tasks import staff_pages

    for name, path in staff_pages(known).items():
        if name in _NO_PAGES:
            continue
        page.goto(f"{address}{path}{_ASKED.get(name, '')}")
        page.wait_for_load_state("networkidle")
        take(page, f"staff-{name}")
    for name, path in dashboard_pages(known).items():
        page.goto(f"{address}/dashboard/#{path}")
        page.wait_for_selector("#view:not(:has(.skeleton)) > *")
        page.wait_for_load_state("networkidle")
        take(page, f"dashboard-{name}")


def sign_in(page: Page, address: str, said: dict[str, str]) -> None:
    """Sign in to the admin site as the demo's admin."""
    page.goto(f"{address}/admin/")
    if page.locator("details:not([open]) > summary").count():
        page.click("summary")
    page.fill("input[name=username]", said["adminEmail"])
    page.fill("input[name=password]", said["adminPassword"])
    page.click("#login-form button[type=submit]")
    page.wait_for_selector(".page")


def main() -> None:
    chromium = find_chromium()
    if chromium is None:
        raise SystemExit("No Chromium: install it (Debian: apt-get install chromium), or set CHROMIUM.")
    with tempfile.TemporaryDirectory() as var_dir, running_demo(var_dir) as address:
        paths, said, known = prepare()
        with browsing(chromium, viewport=_SIZE) as page:
            sign_in(page, address, said)
            for name, path in paths.items():
                page.goto(f"{address}{path}")
                if path.startswith("/dashboard/#"):
                    page.wait_for_selector("#view:not(:has(.skeleton)) > *")
                page.wait_for_load_state("networkidle")
                if name == "dashboard":
                    page.click("button:has-text('Continue as')")
                    page.wait_for_selector(".chart[data-drawn]")
                    # The page waits neither for its first tile nor for the names of tenants.
                    page.wait_for_selector(".tiles a")
                    page.wait_for_selector("select option:text('Retail warehouse')", state="attached")
                page.screenshot(path=_IMAGES / f"{name}.png")
            take_all(page, address, known)


if __name__ == "__main__":
    main()
