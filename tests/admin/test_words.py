"""Lists and forms speak of what they show, and not of Django."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.contrib import admin
from django.urls import reverse

from accounts.admin.base import ActPage
from accounts.billing.accounts import read_account
from tenantadmin.lib.core.request_context import REASON_HELP
from tests.admin.filling import to
from tests.admin.staff import labels, text_of

if TYPE_CHECKING:
    from django.test import Client

    from accounts.models import Tenant
    from tests import factories


def shown(client: Client, name: str, *args: object) -> str:
    return text_of(client.get(reverse(f"admin:{name}", args=args)).content.decode())


@pytest.mark.parametrize(
    ("name", "title", "words"),
    [
        ("accounts_user_changelist", "Users", ()),
        ("accounts_tenant_changelist", "Tenants", ("By state", "Live", "Deleted")),
        ("accounts_membership_changelist", "Memberships", ("By end", "No end", "For a limited time")),
    ],
)
def test_a_list_is_called_after_its_rows(
    staff: Client, tenant: Tenant, name: str, title: str, words: tuple[str, ...]
) -> None:
    text = shown(staff, name)
    assert f"{title} · tenantadmin" in text
    for word in words:
        assert word in text
    for raw in ("to view", "Empty", "Not empty", "deleted at:"):
        assert raw not in text


def test_a_list_filtered_by_state_has_these_rows(staff: Client, tenant: Tenant) -> None:
    address = reverse("admin:accounts_tenant_changelist")
    for value, is_listed in (("1", True), ("0", False)):
        html = staff.get(address, {"deleted_at__isempty": value}).content.decode()
        assert (to("tenant", tenant) in html) == is_listed


def test_a_revision_has_no_seq(staff: Client, tenant: Tenant) -> None:
    text = shown(staff, "accounts_revision_changelist")
    assert "Revision" in text
    assert "Seq" not in text


def test_no_is_no_fault(staff: Client, tenant: Tenant) -> None:
    html = staff.get(reverse("admin:accounts_user_changelist")).content.decode()
    assert "close_small" not in html
    assert '<span class="subtle">no</span>' in html


def test_labels_have_no_colon_and_say_what_is_optional(staff: Client, tenant: Tenant) -> None:
    html = staff.get(to("tenant-open", tenant), {"challenge": "x" * 43}).content.decode()
    assert {"Reason or ticket", "Read its log, run SQL, see names of users optional"} <= labels(html)
    assert REASON_HELP in html


def test_what_ends_for_good_is_red(staff: Client, world: factories.World, tenant: Tenant) -> None:
    html = staff.get(reverse("admin:person-offboard", args=[world.member.pk])).content.decode()
    assert '<button type="submit" class="button danger">' in html
    assert (
        '<button type="submit" class="button">Build again</button>'
        in staff.get(to("tenant-rebuild", tenant)).content.decode()
    )


def test_revoking_nothing_says_so_before_it_asks_for_a_proof(
    staff: Client, world: factories.World, tenant: Tenant
) -> None:
    answer = staff.get(to("tenant-revoke", tenant), follow=True)
    assert answer.redirect_chain == [(to("tenant-people", tenant), 302)]
    assert "Choose what to revoke first." in text_of(answer.content.decode())


def test_all_records_say_for_whom_they_are(staff: Client, db: None) -> None:
    text = shown(staff, "all_records")
    assert "Every row of the database, for engineers." in text
    assert "Minings The last search for recommendations of a tenant." in text
    # Django describes a model without words by its fields.
    assert [
        model for model in admin.site._registry if (model.__doc__ or "(").startswith(f"{model.__name__}(")
    ] == []


def test_a_page_says_what_its_act_will_do() -> None:
    """In the present, the sentence above a button reads as if it were done."""
    pages = [ActPage]
    for page in pages:
        pages += page.__subclasses__()
    own = [(page.__name__, vars(page).get("effect")) for page in pages]
    told = [(name, effect) for name, effect in own if effect and isinstance(effect, str)]
    assert len(told) > 15
    assert [name for name, effect in told if " will " not in effect] == []


def problem_of(answer: Any) -> str:
    """Return the text of the problem that a page shows, without the id of the request."""
    assert answer.status_code == 400
    html = answer.content.decode()
    return text_of(
        html.partition('<div class="notice bad" role="alert">')[2].partition('<p class="subtle">')[0]
    )


def test_owners_that_are_not_there(staff: Client, tenant: Tenant) -> None:
    address = reverse("admin:account-change", args=[tenant.account_id])
    etag = read_account(tenant.account_id).etag
    sent = {"plan": "team", "owners": "unknown@example.org", "name": "Acme", "etag": etag, "reason": "x"}
    answer = staff.post(address, sent)
    assert (answer.status_code, problem_of(answer)) == (400, "")
    error = "<li>There is no user &#x27;unknown@example.org&#x27;.</li>"
    assert f'<ul class="errorlist" id="id_owners_error">{error}</ul>' in answer.content.decode()
