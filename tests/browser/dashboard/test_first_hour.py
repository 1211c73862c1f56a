"""From a mailed link to the first hit, with the real service and the reference Gateway."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import requests
from playwright.sync_api import expect

from rules.lint import lint_ruleset
from tests.browser.browsing import opened_page
from tests.browser.dashboard.signing_in import sign_in_by_mail
from tests.gateway.gateway import Gateway, Statement
from tests.gateway.service import Service

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Browser

    from tests.browser.dashboard.demo import Demo

pytestmark = pytest.mark.browser
ROOT = Path(__file__).parents[3]
#: What the tests' own settings put into the environment.
OURS = {"DATABASE_URL", "REDIS_URL", "OBJECT_STORE_URL", "PUBLIC_BASE_URL", "DJANGO_SETTINGS_MODULE"}
STATEMENT = Statement("SELECT sum(amount) FROM sales.orders", "SELECT", ["sales.orders"], True, False)
#: A build begins at once, or half a minute after the one before.
BUILT_MS = 90_000


@contextmanager
def running_service(var_dir: Path) -> Iterator[str]:
    """Run the service without data on a free port; yield its address."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    kept = {name: value for name, value in os.environ.items() if name not in OURS}
    with subprocess.Popen(
        [sys.executable, "manage.py", "serve"],
        cwd=ROOT,
        env={**kept, "VAR_DIR": str(var_dir), "PORT": str(port), "DJANGO_DEBUG": "true"},
        stdout=subprocess.DEVNULL,
    ) as process:
        try:
            address = f"http://127.0.0.1:{port}"
            deadline = time.monotonic() + 180
            while not is_ready(address):
                assert process.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.5)
            yield address
        finally:
            process.terminate()
            process.wait(timeout=60)


def is_ready(address: str) -> bool:
    try:
        return requests.get(f"{address}/health/ready", timeout=5).ok
    except requests.ConnectionError:
        return False


class Warehouse:
    """Each statement has the same result. As an execution, it has run at once."""

    result = "42"

    def execute(self, _statement: Statement) -> Warehouse:
        return self

    def commit(self) -> None:
        """Nothing is kept."""

    def roll_back(self) -> None:
        """Nothing is kept."""


@contextmanager
def running_gateway(variables: dict[str, str], store: Path) -> Iterator[Gateway]:
    """Run the reference Gateway with the variables that the page shows."""
    url = variables["TENANTADMIN_URL"]

    def write(key: str, data: bytes) -> None:
        path = store / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)

    with closing(Service(url, variables["TENANTADMIN_PAT"])) as service:
        yield Gateway(
            service, Warehouse(), jwks_url=f"{url}/.well-known/jwks.json", issuer=url, write_object=write
        )


def test_from_a_mailed_link_to_the_first_hit(browser: Browser, tmp_path: Path) -> None:
    with running_service(tmp_path / "var") as address, opened_page(browser) as page:
        started = time.monotonic()
        sign_in_by_mail(page, f"{address}/dashboard/", "new@startup.example")
        # The only tenant opens by itself, at its first steps while it has no log.
        page.wait_for_url("**/setup")
        documents: list[str] = []
        page.on("framenavigated", lambda frame: documents.append(frame.url))

        def done(step: str, timeout: float = 5_000) -> None:
            expect(page.locator(f"#step-{step} .badge")).to_have_text("done", timeout=timeout)

        def opened(step: str) -> None:
            expect(page.locator(f"#step-{step}")).to_have_attribute("open", "")
            expect(page.locator("details.panel[open]")).to_have_count(1)

        done("address")
        opened("warehouse")
        page.fill("#step-warehouse textarea", "postgresql://reader:hunter2@db.example.com:5433/sales")
        page.click("#step-warehouse >> text=Read")
        page.click("text=Use this connection")
        done("warehouse")
        assert "hunter2" not in page.content()

        opened("token")
        page.click("text=Make the token >> nth=0")
        shown = page.inner_text("dialog [aria-label=Token]")
        page.click("dialog >> text=Done")
        done("token")
        variables = dict(line.split("=", 1) for line in shown.splitlines())
        tenant = variables["TENANT"]

        opened("first-request")
        # What the step shows is read after it has opened.
        expect(page.locator("#step-first-request")).to_contain_text('dbname="sales"')
        host = re.search(r'host="([^"]+)", port=5433, dbname="sales"', page.inner_text("#step-first-request"))
        assert host is not None
        token = page.evaluate("JSON.parse(sessionStorage['dashboard.session']).access")
        with running_gateway(variables, tmp_path / "var" / "objects") as gateway:
            config = requests.get(
                f"{address}/config/tenants/{tenant}/config",
                headers={"Authorization": f"Bearer {token}"},
                timeout=10,
            ).json()
            assert config["fqdns"] == [host[1]]

            def ask() -> str:
                gateway.poll()
                return gateway.handle(token, tenant, STATEMENT).cache_status

            assert ask() == "PASSTHROUGH"
            gateway.flush()
            done("first-request", BUILT_MS)
            opened("first-rule")
            page.click("#step-first-rule >> text=Publish")
            done("first-rule")

            opened("first-hit")
            assert [ask(), ask()] == ["MISS", "HIT"]
            answered = time.monotonic() - started
            gateway.flush()
            done("first-hit", BUILT_MS)
        followed = time.monotonic() - started

        opened("people")
        page.fill("#step-people input[name=email]", "ann@startup.example")
        page.click("#step-people >> text=Invite >> nth=-1")
        page.wait_for_selector(".notice:has-text('Invited ann@startup.example.')")
        # Colleagues are optional.
        expect(page.locator("[role=status]:has-text('Everything is set up.')")).to_be_visible()
        expect(page.locator("#step-people .badge")).to_have_text("optional")
        assert page.locator("nav >> text=First steps").count() == 0
        # The page moved by itself.
        assert documents == []
        page.click("nav >> text=Requests")
        expect(page.locator(".request .badge")).to_have_text(["Hit", "Miss", "Passed through"])
    print(f"first hit after {answered:.0f} s, on the page after {followed:.0f} s")  # noqa: T201


def test_starter_rules_have_no_findings(demo: Demo, home: str, open_as: Callable[..., Any]) -> None:
    with open_as(demo.member, home) as dashboard:
        chosen: dict[str, Any] = {
            "rules": dashboard.page.evaluate(
                "import('/static/dashboard/starters.js').then(({STARTERS, withStarters}) =>"
                " withStarters([], new Set(STARTERS.map((rule) => rule.id)), ['ref.*']))"
            )
        }
        some = dashboard.page.evaluate(
            "import('/static/dashboard/starters.js').then(({withStarters}) =>"
            " withStarters([{id: 'reports'}], new Set(['reports', 'writes']), []))"
        )
    assert len(chosen["rules"]) == 3
    report = lint_ruleset(chosen)
    assert (report.errors, report.warnings) == ((), ())
    assert [rule["id"] for rule in some] == ["reports", "writes"]
    assert some[1]["invalidateRules"] == ["reports"]
