"""Every model is in the admin site, opens, can be searched, and costs a constant number of queries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.contrib import admin
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils.text import capfirst
from unfold.sites import UnfoldAdminSite

from accounts.models import Account, Tenant
from tenantadmin.admin_site import StaffSite
from tests.admin.filling import OURS, make_row, our_models
from tests.admin.staff import cells, labels

if TYPE_CHECKING:
    from django.db.models import Field, Model
    from django.test import Client

    from tests import factories

#: Fields that no page shows: secrets, hashes of secrets, and a document that the API hands out.
LEFT_OUT = {
    "User": {"password", "epoch"},
    "PersonalAccessToken": {"digest", "previous_digest"},
    "RefreshToken": {"digest"},
    "MagicLink": {"digest"},
    "Mail": {"text", "html"},
    "SummaryDocument": {"body"},
}


def address_of(model: type[Model], page: str, *arguments: object) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_{page}", args=arguments)


def labels_for(field: Field[Any, Any]) -> tuple[str, str]:
    """Return the labels that a page may give a field. An id shown with its tenant's name has the second."""
    name = str(field.verbose_name)
    return capfirst(name), capfirst(name.removesuffix(" id"))


@pytest.mark.parametrize("model", our_models(), ids=lambda model: model.__name__)
def test_every_model_has_a_list_that_opens_and_searches(staff: Client, model: type[Model]) -> None:
    model_admin = admin.site._registry[model]
    assert model_admin.search_fields, "nothing to search by"
    # A longer text is cut in the field.
    assert len(model_admin.search_help_text or "") <= 45
    address = address_of(model, "changelist")
    make_row(model)
    with CaptureQueriesContext(connection) as few:
        assert staff.get(address).status_code == 200
    for _ in range(3):
        make_row(model)
    with CaptureQueriesContext(connection) as many:
        assert staff.get(address).status_code == 200
    assert len(many) == len(few), "a query for each row: read it for all rows in prepare()"
    assert staff.get(address, {"q": "nothing like this"}).status_code == 200
    assert staff.get(address_of(model, "add")).status_code == (302 if model in {Account, Tenant} else 403)


@pytest.mark.parametrize("model", our_models(), ids=lambda model: model.__name__)
def test_every_field_is_on_its_page_or_left_out_on_purpose(staff: Client, model: type[Model]) -> None:
    row = make_row(model)
    answer = staff.get(address_of(model, "change", row.pk))
    assert answer.status_code == 200
    shown = labels(answer.content.decode())
    fields = (*model._meta.concrete_fields, *model._meta.many_to_many)
    words = {"seq": "Revision", "ttl_seconds": "Time to live"}
    left_out = {field.name for field in fields if not shown & {*labels_for(field), words.get(field.name, "")}}
    assert left_out == LEFT_OUT.get(model.__name__, set())


@pytest.mark.parametrize("model", our_models(), ids=lambda model: model.__name__)
def test_an_address_filters_only_by_fields_of_the_list(staff: Client, model: type[Model]) -> None:
    """An address could otherwise ask for the hash of a password, one letter at a time."""
    make_row(model)
    address = address_of(model, "changelist")
    for field in model._meta.concrete_fields:
        for comparison in ("startswith", "gt", "regex", "in"):
            answer = staff.get(address, {f"{field.name}__{comparison}": "1"})
            assert answer.status_code == 400, f"{field.name}__{comparison}"
    for name in LEFT_OUT.get(model.__name__, set()):
        assert staff.get(address, {name: "1"}).status_code == 400


@pytest.mark.parametrize("query", [{"role__exact": "adm\0in"}, {"is_active__exact": "maybe"}])
def test_a_value_that_no_row_can_have_is_no_filter(staff: Client, query: dict[str, str]) -> None:
    address = reverse("admin:accounts_user_changelist")
    answer = staff.get(address, query)
    assert (answer.status_code, answer["Location"]) == (302, f"{address}?e=1")


def test_each_filter_of_a_list_works(staff: Client, world: factories.World) -> None:
    address = reverse("admin:accounts_user_changelist")
    listed = staff.get(address, {"role__exact": "admin", "is_active__exact": "1"})
    assert [row.email for row in listed.context["cl"].result_list] == [world.platform_admin.email]


def test_the_site_holds_our_models_alone() -> None:
    assert {model._meta.app_label for model in admin.site._registry} == set(OURS)


def test_a_page_shows_the_rows_that_belong_to_it(staff: Client, world: factories.World) -> None:
    account = staff.get(address_of(Account, "change", world.account.pk)).content.decode()
    assert str(world.tenant.pk) in account
    for row in (world.owner, world.tenant):
        page = staff.get(address_of(type(row), "change", row.pk)).content.decode()
        assert world.owner.email in page
        assert world.tenant.name in page
        assert ("role", "Owner") in cells(page, "role")


def test_the_site_is_ours() -> None:
    """django-unfold's default configuration would put its own site in the place of ours, without a word."""
    assert type(admin.site._wrapped) is StaffSite  # type: ignore[attr-defined]  # a lazy object
    assert isinstance(admin.site, UnfoldAdminSite)
    assert admin.sites.site is admin.site
