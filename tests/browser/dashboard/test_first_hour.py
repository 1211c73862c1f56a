"""From a mailed link to the first hit, with the real service and the reference Gateway."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import requests
from playwright.sync_api import expect

from accounts.models import Tenant
from analytics.history.rows import Source
from analytics.history.standardize import Standardizer
from rules.explain import explain
from rules.language import read_rules
from rules.lint import lint_ruleset
from tests import factories
from tests.browser.browsing import opened_page, pass_frames
from tests.browser.dashboard.serving import running_service
from tests.browser.dashboard.signing_in import sign_in_by_mail
from tests.gateway.gateway import Gateway, Statement
from tests.gateway.service import Service

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Route

    from tests.browser.dashboard.demo import Demo

pytestmark = pytest.mark.browser
STATEMENT = Statement("SELECT sum(amount) FROM sales.orders", "SELECT", ["sales.orders"], True, False)
#: A build begins at once, or half a minute after the one before.
BUILT_MS = 180_000


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
    with (
        running_service(tmp_path, until="Demo data: ") as printed,
        opened_page(browser) as page,
    ):
        (address,) = re.findall(r"The service answers at (\S+)", printed)
        started = time.monotonic()
        sign_in_by_mail(page, f"{address}/dashboard/", "new@startup.example")
        # The only tenant opens by itself, at its first steps while it has no log.
        page.wait_for_url("**/setup")
        documents: list[str] = []
        page.on("framenavigated", lambda frame: documents.append(frame.url))

        def done(step: str, timeout: float | None = None) -> None:
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


def test_a_done_step_closes_an_older_answer_never_comes_last_and_spellings_show(
    own_origin: str, open_as: Callable[..., Any]
) -> None:
    owner = factories.make_user("steps@elsewhere.example")
    account = factories.make_account("Steps", owners=[owner])
    tenant = factories.make_tenant(account, "Steps", owner=owner)
    held: list[Route] = []
    with open_as(owner, own_origin, f"/t/{tenant.pk}/setup") as dashboard:
        page = dashboard.page
        page.fill("#step-address input", "steps.gateway.localhost")
        # As if no frame came between the click and the answers: the button keeps the focus.
        page.locator("#step-address button").evaluate(
            "it => Object.defineProperty(it, 'disabled', {get: () => false, set: () => {}})"
        )

        def hold(route: Route) -> None:
            held.append(route)

        page.route("**/setup", hold, times=1)
        with page.expect_request("**/setup"):
            page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
        del dashboard.asked[:]
        with page.expect_response("**/config"):
            page.click("#step-address button")
        pass_frames(page)
        assert f"GET /tenants/{tenant.pk}/setup" not in dashboard.asked
        spelled = [{"table": "p.s.a", "spellings": ["p.s.a", "s.a"]}]
        held[0].fulfill(json={**held[0].fetch().json(), "spellings": spelled})
        expect(page.locator("#step-address .badge")).to_have_text("done")
        expect(page.locator("details.panel[open]")).to_have_attribute("id", "step-warehouse")
        # The second answer has none again.
        expect(page.locator("text=several spellings")).to_have_count(0)
        page.route("**/setup", lambda it: it.fulfill(json={**it.fetch().json(), "spellings": spelled}))
        page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
        expect(page.locator("[aria-label^='Tables with several'] td")).to_have_text(["p.s.a", "p.s.a, s.a"])
    Tenant.objects.filter(pk=tenant.pk).delete()
    account.delete()


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
    rules = read_rules(chosen["rules"])
    for text, decides in {
        "SELECT a FROM sales.orders": "reports",
        "BEGIN": None,
        "FETCH 100 FROM c": None,
        "SHOW transaction_isolation": None,
        "SELECT current_schema()": None,
        "COPY sales.orders FROM STDIN": "writes",
    }.items():
        facts = Standardizer(Source.POSTGRESQL)(text).facts
        request = {
            "statementType": facts.kind,
            "tables": [*facts.tables],
            "tableCount": len(facts.tables),
            "isReadOnly": facts.reads,
            "isDataChange": facts.changes,
            "isDDL": facts.defines,
            "hasNonDeterministicFunctions": facts.varies,
        }
        assert explain(rules, request).decision.rule_id == decides, text
