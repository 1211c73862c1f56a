"""Acts of staff on the admin site, with a fresh proof of the second factor and without. Docs: security.md."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client
from django.urls import get_resolver, reverse

from accounts.admin.base import ActPage
from accounts.models import AccessRequest, Domain
from tenantadmin.lib.core.timestamps import now
from tests import factories
from tests.admin.staff import prove_factor

if TYPE_CHECKING:
    from django.urls import URLPattern, URLResolver

pytestmark = pytest.mark.django_db

#: What changes rights or opens logs. Written by hand.
PROVEN = frozenset(
    {
        *("tenant-access", "tenant-access-ask", "tenant-access-approve", "tenant-member", "tenant-revoke"),
        *("people-revoke", "person-revoke", "person-offboard"),
        *("account-new", "tenant-new", "account-change", "domain-verify", "terms-edit"),
    }
)


def act_pages(resolver: URLResolver | URLPattern) -> Iterator[tuple[str, type[ActPage]]]:
    """Yield name and class of each page with a form that acts."""
    for pattern in getattr(resolver, "url_patterns", ()):
        yield from act_pages(pattern)
    page = getattr(getattr(resolver, "callback", None), "view_class", None)
    if isinstance(page, type) and issubclass(page, ActPage):
        yield str(getattr(resolver, "name", "")), page


def test_the_table_names_every_act_that_asks_for_a_proof() -> None:
    found = dict(act_pages(get_resolver()))
    assert {name for name, page in found.items() if page.is_dangerous} == PROVEN
    assert len(found) > len(PROVEN)


@pytest.fixture
def addresses(world: factories.World) -> dict[str, str]:
    tenant, support = world.tenant, factories.make_user("support@example.org", is_support=True)
    asked = AccessRequest.objects.create(
        tenant=tenant, staff=support, hours=1, reason="x", expires_at=now() + timedelta(hours=1)
    )
    domain = Domain.objects.create(account=world.account, name="example.com", challenge="c")
    of_tenant, person = {"tenant": tenant.pk}, {"person": world.member.pk}
    given: dict[str, dict[str, Any]] = {
        **dict.fromkeys(("tenant-access", "tenant-access-ask", "tenant-member", "tenant-revoke"), of_tenant),
        "tenant-access-approve": {**of_tenant, "access_request": asked.pk},
        **dict.fromkeys(("person-revoke", "person-offboard"), person),
        **{key: {} for key in ("people-revoke", "terms-edit", "account-new", "tenant-new")},
        "account-change": {"account": world.account.pk},
        "domain-verify": {"account": world.account.pk, "domain": domain.name},
    }
    # Without a choice, the pages that revoke lead back before they ask for a proof.
    return {name: f"{reverse(f'admin:{name}', kwargs=values)}?right=x" for name, values in given.items()}


@pytest.mark.parametrize("name", sorted(PROVEN))
def test_it_needs_a_proof_of_the_last_minutes(
    name: str, addresses: dict[str, str], world: factories.World, settings: Any
) -> None:
    settings.STAFF_SECOND_FACTOR = True
    browser, address = Client(), addresses[name]
    browser.force_login(world.platform_admin)
    prove_factor(browser, world.platform_admin)
    confirm = reverse("mfa_reauthenticate")
    fresh = [browser.get(address), browser.post(address, {"reason": ""})]
    assert not [item for item in fresh if item.headers.get("Location", "").startswith(confirm)]
    session = browser.session
    session["account_authentication_methods"][0]["at"] = time.time() - 901
    session.save()
    # Looking at the form needs none.
    assert browser.get(address).status_code == 200
    stale = browser.post(address, {"reason": "ticket 7"})
    assert stale.status_code == 302
    assert stale["Location"].startswith(confirm)
