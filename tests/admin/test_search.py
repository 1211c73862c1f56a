"""The search of the admin site's palette."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from accounts.models import Domain

if TYPE_CHECKING:
    from django.test import Client

    from tests.factories import World


@pytest.mark.parametrize("page", ["0", "-1", "x", "²", "9", "9" * 5000, ""])
def test_a_page_of_the_palette_that_there_is_not(staff: Client, page: str) -> None:
    for extended in ({}, {"extended": "1"}):
        assert staff.get("/admin/search/", {"s": "wareh", "page": page, **extended}).status_code == 404
    assert staff.get("/admin/search/", {"s": "wareh", "extended": "1"}).status_code == 200


def test_a_domain_leads_to_its_account(staff: Client, world: World) -> None:
    for domain in ("waits.example", "other.example"):
        Domain.objects.create(account=world.tenant.account, name=domain, challenge="c")
    found = staff.get("/admin/search/", {"s": "Waits.example", "extended": "1"}).content.decode()
    assert f'href="/admin/accounts/{world.tenant.account_id}/#domains"' in found
    assert "Domain of Acme, not verified" in found
    assert "other.example" not in found
