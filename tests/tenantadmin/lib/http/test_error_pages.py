"""Errors outside of DRF: browsers get pages, machines get JSON."""

from __future__ import annotations

import pytest
from django.conf import settings
from django.test import Client

from tests.admin.staff import text_of

#: What Chromium sends when it opens a page.
BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"
pytestmark = pytest.mark.django_db


def opened(client: Client, path: str) -> tuple[int, str, str]:
    """Return status, type and text of the answer to a browser."""
    answer = client.get(path, headers={"Accept": BROWSER})
    return answer.status_code, answer["Content-Type"], text_of(answer.content.decode())


def test_an_unknown_page_of_the_admin_site_is_in_its_frame(staff: Client) -> None:
    status, kind, text = opened(staff, "/admin/nothing/")
    assert (status, kind) == (404, "text/html; charset=utf-8")
    assert "There is nothing here" in text
    assert "All records" in text


def test_a_page_that_is_not_open_to_staff_says_so(staff: Client) -> None:
    status, kind, text = opened(staff, "/admin/analytics/build/add/")
    assert (status, kind) == (403, "text/html; charset=utf-8")
    assert "You may not see this This page is not open to you, or it does not exist." in text


def test_an_unknown_page_elsewhere_leads_to_the_dashboard(client: Client) -> None:
    status, kind, text = opened(client, "/nothing")
    assert (status, kind) == (404, "text/html; charset=utf-8")
    assert "tenantadmin There is nothing here" in text
    page = client.get("/nothing", headers={"Accept": BROWSER}).content.decode()
    assert f'href="{settings.DASHBOARD_URL}"' in page


@pytest.mark.parametrize("accept", ["", "*/*", "application/json"])
def test_machines_get_json(client: Client, accept: str) -> None:
    answer = client.get("/nothing", headers={"Accept": accept} if accept else {})
    assert (answer.status_code, answer["Content-Type"]) == (404, "application/json")


def test_an_old_form_is_refused_by_a_page() -> None:
    client = Client(enforce_csrf_checks=True)
    answer = client.post("/admin/login/", {"username": "x"}, headers={"Accept": BROWSER})
    assert answer.status_code == 403
    assert "Open the page again, and send it again." in text_of(answer.content.decode())


def test_a_browser_that_opens_the_service_sees_the_dashboard(client: Client) -> None:
    answer = client.get("/", headers={"Accept": BROWSER})
    assert (answer.status_code, answer["Location"]) == (302, settings.DASHBOARD_URL)
    assert "Accept" in answer["Vary"]
    contract = client.get("/", headers={"Accept": "*/*"})
    assert (contract.status_code, contract.json()["openapi"]) == (200, "3.0.3")
    assert "Accept" in contract["Vary"].replace("Accept-Encoding", "")
