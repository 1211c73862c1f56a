"""An assessment: what to run, its report on the screen and on paper, and the tenant that it becomes."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from axe_playwright_python.sync_playwright import DEFAULT_OPTIONS, Axe
from playwright.sync_api import expect

from accounts.models import Membership, Tenant
from analytics.history.rows import Source
from tests import factories
from tests.analytics.history.assessing import assess
from tests.analytics.history.stream import as_snowflake, make_stream
from tests.browser.browsing import faults_of_width
from tests.browser.dashboard.contract_types import MODULES

if TYPE_CHECKING:
    from playwright.sync_api import ViewportSize

    from accounts.models import User
    from tests.browser.dashboard.demo import Demo

DOCS = Path(__file__).parents[3] / "docs"
PHONE: ViewportSize = {"width": 390, "height": 844}
METERING = "START_TIME,WAREHOUSE_NAME,CREDITS_USED_COMPUTE\n2026-03-01 07:00:00Z,WH,9.5\n"


def test_the_page_has_the_queries_of_the_document() -> None:
    page = (MODULES / "pages" / "assessments.js").read_text()
    queries = [
        re.sub(r"\s+-- .*$", "", statement, flags=re.MULTILINE)
        for block in re.findall(r"```sql\n(.*?)\n```", (DOCS / "assess.md").read_text(), re.DOTALL)
        for statement in block.split("\n\n")
    ]
    assert len(queries) == 6
    assert [query for query in queries if query not in page] == []


@pytest.fixture(scope="package")
def report(demo: Demo, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("history")
    history, metering = folder / "history.csv", folder / "metering.csv"
    history.write_bytes(as_snowflake(make_stream(3_000)))
    metering.write_text(METERING)
    return assess(
        *(history, "--from", Source.SNOWFLAKE, "--price", "3.00", "--metering", metering),
        *("--owner", "assessing@elsewhere.example", "--as", "Our warehouse"),
    )


@pytest.fixture(scope="package")
def buyer(report: dict[str, Any]) -> User:
    return Membership.objects.get(tenant_id=report["tenantId"]).user


@pytest.mark.browser
def test_the_report_is_read_on_a_screen_a_phone_and_paper(
    report: dict[str, Any], buyer: User, home: str, open_as: Callable[..., Any]
) -> None:
    with open_as(buyer, home, "/assessments?from=databricks") as dashboard:
        page = dashboard.page
        expect(page.locator(".copyable")).to_contain_text(["system.query.history", "system.billing", "make"])
        page.click("main >> text=Our warehouse")
        page.wait_for_selector("h1:has-text('Our warehouse')")
        dashboard.settle()
        expect(page.locator("nav [aria-current]")).to_have_text("Assessment")
        main = page.locator("main")
        read, bill = report["read"], report["bill"]
        for text in (
            f"{read['rows']:,}",
            f"{bill['savedPerMonth']['money']['high']} USD",
            f"{bill['without']['money']['high']} USD",
            f"{100 * report['repeats']['hour']:.1f}%",
            *(row["name"] or "no rule" for row in report["replay"]["byRule"]),
            bill["metering"][0]["inWords"],
            *report["notes"],
        ):
            expect(main).to_contain_text(text)
        page.evaluate(Axe().axe_script)
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            assert page.evaluate("options => axe.run(options)", DEFAULT_OPTIONS)["violations"] == []
        for size in ({"width": 1280, "height": 800}, PHONE):
            page.set_viewport_size(size)
            assert faults_of_width(page, "#view") == {}
        page.emulate_media(media="print")
        expect(page.locator(".side")).to_be_hidden()
        expect(page.locator("main .button:visible")).to_have_count(0)
        expect(main.locator("h2:has-text('The bill')")).to_be_visible()


@pytest.mark.browser
def test_an_owner_makes_a_customers_tenant_of_it(
    report: dict[str, Any], own_origin: str, open_as: Callable[..., Any], tmp_path: Path
) -> None:
    path = tmp_path / "other.csv"
    path.write_bytes(as_snowflake(make_stream(300)))
    owner = factories.make_user("adopting@elsewhere.example")
    account = factories.make_account("Buyers", owners=[owner])
    made = assess(path, "--from", "snowflake", "--owner", owner.email, "--as", "To be adopted")
    member = factories.make_user("reading@elsewhere.example")
    Membership.objects.create(user=member, tenant_id=made["tenantId"], role="admin")
    address = f"/t/{made['tenantId']}/assessment"
    adopting = "text=Make it a customer’s tenant"
    with open_as(member, own_origin, address) as dashboard:
        dashboard.page.wait_for_selector("h1:has-text('To be adopted')")
        expect(dashboard.page.locator(adopting)).to_have_count(0)
    with open_as(owner, own_origin, address) as dashboard:
        page = dashboard.page
        page.click(adopting)
        page.fill("[name=tenantName]", "Sales")
        page.select_option("[name=accountId]", label="Buyers")
        page.click("dialog >> text=Make the tenant")
        page.wait_for_selector("h1:has-text('First steps')")
        dashboard.settle()
        expect(page.locator(".side .of")).to_have_text("Sales")
    assert Tenant.objects.customers().get(account=account).name == "Sales"
    assert not Tenant.objects.filter(pk=made["tenantId"]).exists()
