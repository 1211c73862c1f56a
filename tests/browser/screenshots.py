"""Take the pictures of the documentation: ``make screenshots`` starts the demo and writes `docs/images`."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

import msgspec
import requests

from tests.browser.browsing import browsing, find_chromium

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Page

ROOT: Final = Path(__file__).resolve().parents[2]
_IMAGES: Final = ROOT / "docs" / "images"
_SIZE: Final = {"width": 1280, "height": 800}
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


def prepare() -> tuple[dict[str, str], dict[str, str]]:
    """Wait for the replay of the demo; return the paths of the pages by name, and what `demo.json` says."""
    # Needs the environment.
    import django

    django.setup()
    from accounts.limited_access import take_access
    from accounts.models import User
    from accounts.signin.flow import Device, Identity, complete_sign_in
    from analytics.demo.access import demo_file
    from analytics.models import ReplayRun
    from tosapp.publishing import require_active

    done = ReplayRun.objects.filter(state=ReplayRun.State.DONE, subject__has_key="draftId")
    _wait(done.exists)
    run = done.latest("requested_at")
    said = json.loads(demo_file().read_text())
    User.objects.filter(email=said["ownerEmail"]).update(tos=require_active().hash)
    take_access(User.objects.get(email=said["adminEmail"]), tenant_id=run.tenant_id, hours=1)
    owner = complete_sign_in(Identity(email=said["ownerEmail"], email_verified=True), Device())
    tenant = f"/admin/tenants/{run.tenant_id}/"
    return {
        "home": "/admin/",
        "tenant": tenant,
        "replay": f"{tenant}rules/drafts/{run.subject['draftId']}/",
        "history": f"{tenant}history/?to=2",
        "markers": f"{tenant}markers/",
        "sql": f"{tenant}sql/",
        "dashboard": f"/dashboard/?{urlencode(msgspec.structs.asdict(owner))}#/t/{run.tenant_id}/overview",
    }, said


def sign_in(page: Page, address: str, said: dict[str, str]) -> None:
    """Sign in to the admin site as the demo's admin."""
    page.goto(f"{address}/admin/")
    if page.locator("details:not([open]) > summary").count():
        page.click("summary")
    page.fill("input[name=username]", said["adminEmail"])
    page.fill("input[name=password]", said["adminPassword"])
    page.click("#login-form button[type=submit]")
    page.wait_for_selector("#drops")


def main() -> None:
    chromium = find_chromium()
    if chromium is None:
        raise SystemExit("No Chromium: install it (Debian: apt-get install chromium), or set CHROMIUM.")
    with tempfile.TemporaryDirectory() as var_dir, running_demo(var_dir) as address:
        paths, said = prepare()
        with browsing(chromium, viewport=_SIZE) as page:
            sign_in(page, address, said)
            for name, path in paths.items():
                page.goto(f"{address}{path}")
                page.wait_for_load_state("networkidle")
                if name == "dashboard":
                    page.wait_for_selector(".chart[data-drawn]")
                page.screenshot(path=_IMAGES / f"{name}.png")


if __name__ == "__main__":
    main()
